import {
  type BeatResult,
  type ClaimRequest,
  type ClaimResult,
  type EnqueueRequest,
  type HandBackRequest,
  invalidArgument,
  type JobId,
  type JobQuery,
  type JobRecord,
  type JournalEntry,
  type Logger,
  type Notifier,
  PORT_VERSION,
  type ProducerStore,
  type ReadJournalRequest,
  type RecoverRequest,
  type Settlement,
  type SettleRequest,
  type SettleVerdict,
  type StaleClaim,
  type Store,
  type StoreCapabilities,
  type Subscription,
  toDatabaseError,
  toEnqueueError,
  toUuid,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import pg from "pg";
import { abortable } from "./abort.ts";
import { Claimer } from "./claimer.ts";
import { Database, type SqlConnection, type SqlSource } from "./database.ts";
import { Kinds } from "./kinds.ts";
import { type KyselyInstance, kyselyConnection, kyselySource } from "./kysely-source.ts";
import { migrate } from "./migrate.ts";
import type { Names } from "./names.ts";
import { type NotifierOptions, subscribe } from "./notifier.ts";
import {
  type BorrowOptions,
  type ConnectOptions,
  connectionString,
  maxConnections,
  type ResolvedOptions,
  resolveOptions,
} from "./options.ts";
import type { PgListenClient, PgPoolLike, PgQueryable } from "./pg-like.ts";
import { pgSource, pgTransaction } from "./pg-source.ts";
import { createProducer } from "./producer.ts";
import { toJobRecord, toJournalEntry, toStaleClaim } from "./row-mapping.ts";
import { queryJobs } from "./sql/query-jobs.ts";
import { createStatements, type Statements } from "./statements.ts";

/** The transactions that `within` accepts: a `pg` client inside BEGIN … COMMIT, or a Kysely transaction. */
export type PostgresTransaction =
  | PgQueryable
  | Pick<KyselyInstance, "executeQuery" | "withoutPlugins">;

/** Which release of the SQL contract this code speaks; published with each worker. */
const codeVersion = 1;

/**
 * The PostgreSQL store: everything that queue and worker ask for, as single statements over a `pg` pool or a Kysely
 * instance. One pooled connection suffices for every operation; listening takes one more of its own.
 *
 * @example
 * ```ts
 * const store = await PostgresStore.connect({ connectionString });
 * await store.migrate();
 * ```
 */
export class PostgresStore implements Store<PostgresTransaction>, Notifier {
  readonly portVersion = PORT_VERSION;
  readonly capabilities: StoreCapabilities;
  readonly #names: Names;
  readonly #logger: Logger;
  readonly #database: Database;
  readonly #kinds: Kinds;
  readonly #statements: Statements;
  readonly #producer: ProducerStore;
  readonly #preparedStatements: boolean;
  readonly #listenClient: NotifierOptions["createClient"] | null;
  readonly #claimers = new Map<WorkerId, Claimer>();
  readonly #subscriptions = new Set<Subscription>();
  #closed = false;

  /** Borrows a pool or a Kysely instance, which stays the application's to end. Throws `invalid-argument`. */
  constructor(options: BorrowOptions);
  /** @internal */
  constructor(options: BorrowOptions, owned: { readonly pool: pg.Pool });
  constructor(options: BorrowOptions, owned?: { readonly pool: pg.Pool }) {
    const resolved = resolveOptions(options, ["pool", "db"]);
    const source = createSource(options, resolved, owned !== undefined);
    this.#names = resolved.names;
    this.#logger = resolved.logger;
    this.#preparedStatements = resolved.preparedStatements;
    this.#database = new Database(source, resolved.names.prefix, resolved.logger);
    this.#kinds = new Kinds(this.#database, resolved.names);
    this.#statements = createStatements(resolved.names);
    this.#listenClient = createListenClient(options, resolved);
    this.capabilities = { transactions: true, notifications: this.#listenClient !== null };
    this.#producer = createProducer(
      this.#statements.enqueue,
      this.capabilities,
      async (statement, values, request) => {
        try {
          return await this.#database.runUnmapped(statement, values);
        } catch (error) {
          throw this.#enqueueError(error, request);
        }
      },
    );
  }

  /**
   * Opens a store with a pool of its own, and asks the server for a sign of life.
   *
   * Rejects with `invalid-argument` for a bad option and with `database` where nobody answers or lets us in.
   */
  static async connect(options: ConnectOptions): Promise<PostgresStore> {
    const { connectionString: url, maxConnections: max, ...rest } = options;
    const { ssl } = resolveOptions(rest, ["connectionString", "maxConnections"]);
    const config: pg.PoolConfig = {
      connectionString: connectionString("connectionString", url),
      max: maxConnections(max),
      keepAlive: true,
    };
    if (ssl !== undefined) config.ssl = ssl;
    const pool = new pg.Pool(config);
    const store = new PostgresStore({ ...rest, pool }, { pool });
    try {
      await pool.query("select 1");
      return store;
    } catch (error) {
      await store.close();
      throw toDatabaseError(error, {
        doing: "connect to the database",
        prefix: store.#names.prefix,
      });
    }
  }

  /** Creates or upgrades the tables and functions; safe from many processes at once. Rejects with `migration`. */
  async migrate(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await abortable(migrate(this.#database, this.#names), options.signal);
  }

  /** Changes settings that are kept in the database, since the producers' functions read them. */
  async configure(settings: { readonly notify: boolean }): Promise<void> {
    if (typeof settings?.notify !== "boolean") {
      throw invalidArgument(
        "notify",
        "must be true or false",
        "pass { notify: false } to stop notifications",
      );
    }
    await this.#database.run(
      this.#statements.configure,
      [settings.notify ? 1 : 0],
      "change the settings",
    );
  }

  /** Closes the store's subscriptions, and its pool if it made it itself. A second call changes nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    await this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── producing ──────────────────────────────────────────────────────────────────────────────────────────────────

  enqueue(request: EnqueueRequest): ReturnType<ProducerStore["enqueue"]> {
    return this.#producer.enqueue(request);
  }

  within(tx: PostgresTransaction): ProducerStore {
    const connection = connectionOf(tx, this.#preparedStatements);
    return createProducer(
      this.#statements.enqueue,
      this.capabilities,
      async (statement, values, request) => {
        try {
          return await connection.run(statement, values);
        } catch (error) {
          throw this.#enqueueError(error, request);
        }
      },
    );
  }

  #enqueueError(error: unknown, { jobs }: EnqueueRequest): Error {
    return toEnqueueError(error, { jobs, prefix: this.#names.prefix });
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────────────────────

  async startWorker(request: WorkerRegistration): Promise<{ readonly worker: WorkerId }> {
    await this.#kinds.load(request.kinds);
    const [row] = await this.#database.run(
      this.#statements.startWorker,
      registration(request),
      "start a worker",
    );
    return { worker: row?.["id"] as number };
  }

  async stopWorker({ worker }: { readonly worker: WorkerId }): Promise<void> {
    this.#claimers.delete(worker);
    await this.#database.run(this.#statements.stopWorker, [worker], "stop a worker");
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    let claimer = this.#claimers.get(request.worker);
    if (claimer === undefined) {
      claimer = new Claimer(this.#database, this.#kinds, this.#names);
      this.#claimers.set(request.worker, claimer);
    }
    return claimer.claim(request);
  }

  async settle({
    worker,
    settlements,
  }: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    if (settlements.length === 0) return { verdicts: [] };
    const ids = settlements.map(({ jobId }) => toUuid(jobId));
    const runs = settlements.map(({ runCount }) => runCount);
    const codes = settlements.map(({ outcome }) => outcomeCodes[outcome]);
    const doing = `settle ${settlements.length} run${settlements.length === 1 ? "" : "s"}`;
    const rows = settlements.every(isPlainCompletion)
      ? await this.#database.run(this.#statements.settleCompleted, [worker, ids, runs], doing)
      : await this.#database.run(
          this.#statements.settle,
          [
            worker,
            ids,
            runs,
            codes,
            settlements.map(({ delayMs }) => delayMs),
            settlements.map(({ runAt }) => runAt),
            settlements.map(({ carry }) => carry),
            settlements.map(({ note }) => note),
            settlements.map(({ attachment }) => attachment),
            settlements.map(({ detail }) => detail),
          ],
          doing,
        );
    return { verdicts: await this.#verdicts(worker, ids, runs, codes, rows) };
  }

  async handBack({
    worker,
    claims,
  }: HandBackRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    if (claims.length === 0) return { verdicts: [] };
    const ids = claims.map(({ jobId }) => toUuid(jobId));
    const runs = claims.map(({ runCount }) => runCount);
    const rows = await this.#database.run(
      this.#statements.handBack,
      [worker, ids, runs],
      "hand claims back",
    );
    // A claim handed back leaves no entry, so no earlier call of this run can be found in the journal.
    return {
      verdicts: await this.#verdicts(
        worker,
        ids,
        runs,
        ids.map(() => null),
        rows,
      ),
    };
  }

  /** What was not applied is looked at again, unlocked. */
  async #verdicts(
    worker: WorkerId,
    ids: readonly string[],
    runs: readonly number[],
    codes: readonly (string | null)[],
    applied: readonly Readonly<Record<string, unknown>>[],
  ): Promise<readonly SettleVerdict[]> {
    const verdicts = new Array<SettleVerdict>(ids.length).fill("lost");
    for (const row of applied) verdicts[(row["ord"] as number) - 1] = "applied";
    if (applied.length === ids.length) return verdicts;
    const open = verdicts.flatMap((verdict, index) => (verdict === "lost" ? [index] : []));
    const pick = <T>(values: readonly T[]) => open.map((index) => values[index] as T);
    const rows = await this.#database.run(
      this.#statements.verdicts,
      [worker, pick(ids), pick(runs), pick(codes)],
      "look at runs that were not settled",
    );
    rows.forEach((row, index) => {
      verdicts[open[index] as number] = row["verdict"] as SettleVerdict;
    });
    return verdicts;
  }

  async beat(request: WorkerRegistration & { readonly worker: WorkerId }): Promise<BeatResult> {
    const rows = await this.#database.run(
      this.#statements.beat,
      [request.worker, ...registration(request)],
      "beat",
    );
    const [first] = rows;
    return {
      silent: rows.flatMap((row) =>
        row["id"] === null
          ? []
          : [
              {
                worker: row["id"] as number,
                name: row["name"] as string,
                silentMs: row["silent_ms"] as number,
                dead: row["dead"] === 1,
              },
            ],
      ),
      nextSuspectMs: (first?.["next_suspect_ms"] ?? null) as number | null,
      serverUpMs: first?.["server_up_ms"] as number,
    };
  }

  async findStale(request: {
    readonly holders: readonly { readonly worker: WorkerId; readonly overdueOnly: boolean }[];
    readonly orphans: boolean;
    readonly limit: number;
  }): Promise<{ readonly claims: readonly StaleClaim[] }> {
    const { holders, orphans, limit } = request;
    const claims: StaleClaim[] = [];
    if (holders.length > 0) {
      const all = holders.filter(({ overdueOnly }) => !overdueOnly).map(({ worker }) => worker);
      const rows = await this.#database.run(
        this.#statements.findStale,
        [holders.map(({ worker }) => worker), all, limit],
        "look for stale claims",
      );
      claims.push(...rows.map(toStaleClaim));
      const done = all.filter((worker) => !claims.some(({ holder }) => holder === worker));
      if (done.length > 0 && claims.length < limit) {
        await this.#database.run(this.#statements.giveUpWorkers, [done], "give up dead workers");
      }
    }
    if (orphans && claims.length < limit) {
      const rows = await this.#database.run(
        this.#statements.findOrphans,
        [limit - claims.length],
        "look for orphaned claims",
      );
      claims.push(...rows.map(toStaleClaim));
    }
    return { claims };
  }

  async recover({ recoveries }: RecoverRequest): Promise<{ readonly applied: readonly boolean[] }> {
    if (recoveries.length === 0) return { applied: [] };
    const rows = await this.#database.run(
      this.#statements.recover,
      [
        recoveries.map(({ jobId }) => toUuid(jobId)),
        recoveries.map(({ runCount }) => runCount),
        recoveries.map(({ holder }) => holder),
        recoveries.map(({ outcome }) => (outcome === "dead" ? "d" : "s")),
        recoveries.map(({ delayMs }) => delayMs),
        recoveries.map(({ note }) => note),
      ],
      "recover stale claims",
    );
    const applied = new Array<boolean>(recoveries.length).fill(false);
    for (const row of rows) applied[(row["ord"] as number) - 1] = true;
    return { applied };
  }

  listen({
    onWake,
    logger = this.#logger,
  }: {
    readonly onWake: () => void;
    readonly logger?: Logger;
  }): Subscription {
    const createClient = this.#listenClient;
    if (createClient === null)
      return { listening: Promise.resolve(), close: () => Promise.resolve() };
    const subscription = subscribe({ createClient, channel: this.#names.channel }, onWake, logger);
    this.#subscriptions.add(subscription);
    return {
      listening: subscription.listening,
      close: async () => {
        this.#subscriptions.delete(subscription);
        await subscription.close();
      },
    };
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────────────────────

  async findJob({
    id,
    signal,
  }: {
    readonly id: JobId;
    readonly signal?: AbortSignal | undefined;
  }): Promise<{ readonly job: JobRecord | null }> {
    const query = {
      statuses: null,
      kinds: null,
      ids: [id],
      finishedSince: null,
      finishedUntil: null,
      limit: 1,
      before: null,
      signal,
    };
    const { jobs } = await this.queryJobs(query);
    return { job: jobs[0] ?? null };
  }

  async queryJobs(query: JobQuery): Promise<{ readonly jobs: readonly JobRecord[] }> {
    const { statement, values } = queryJobs(this.#names, query);
    const rows = await abortable(this.#database.run(statement, values, "read jobs"), query.signal);
    return { jobs: rows.map(toJobRecord) };
  }

  async readJournal({
    jobId,
    limit,
    signal,
  }: ReadJournalRequest): Promise<{ readonly entries: readonly JournalEntry[] }> {
    const reading = this.#database.run(
      this.#statements.readJournal,
      [toUuid(jobId), limit ?? null],
      "read the journal",
    );
    return { entries: (await abortable(reading, signal)).map(toJournalEntry) };
  }
}

const outcomeCodes = {
  completed: "c",
  paused: "p",
  retried: "r",
  dead: "d",
  released: "l",
} as const;

function isPlainCompletion({ outcome, note, attachment, detail }: Settlement): boolean {
  return outcome === "completed" && note === null && attachment === null && detail === null;
}

function registration({
  name,
  kinds,
  pollMaxMs,
  workerTimeoutMs,
  shortestLeaseMs,
}: WorkerRegistration): readonly unknown[] {
  const finite = (ms: number) => Math.min(ms, 1e15);
  return [
    name,
    [...kinds],
    finite(pollMaxMs),
    finite(workerTimeoutMs),
    finite(shortestLeaseMs),
    codeVersion,
  ];
}

function createSource(
  { pool, db }: BorrowOptions,
  { preparedStatements, logger }: ResolvedOptions,
  owned: boolean,
): SqlSource {
  if (isPool(pool) && db === undefined)
    return pgSource(pool, { preparedStatements, owned, logger });
  if (isKysely(db) && pool === undefined) return kyselySource(db);
  throw invalidArgument(
    "pool",
    "or db must be given, one of them",
    "pass { pool: new pg.Pool(…) } or { db: new Kysely(…) }",
  );
}

/** A client for listening, made like the pool's own: same server, same credentials, same TLS. */
function createListenClient(
  { pool }: BorrowOptions,
  { listen, listenConnectionString, ssl }: ResolvedOptions,
): (() => PgListenClient) | null {
  if (!listen) return null;
  const settings = { keepAlive: true, ...(ssl === undefined ? {} : { ssl }) };
  if (listenConnectionString !== undefined)
    return () => new pg.Client({ connectionString: listenConnectionString, ...settings });
  const { Client, options } = (pool ?? {}) as {
    Client?: new (config: object) => PgListenClient;
    options?: object;
  };
  if (Client === undefined || options === undefined) return null;
  return () => new Client({ ...options, ...settings });
}

function connectionOf(tx: PostgresTransaction, preparedStatements: boolean): SqlConnection {
  if (isKysely(tx)) return kyselyConnection(tx);
  if (typeof tx === "object" && tx !== null && "query" in tx && typeof tx.query === "function")
    return pgTransaction(tx, preparedStatements);
  throw invalidArgument(
    "tx",
    "is not a transaction of this store",
    "pass a pg client inside BEGIN, or a Kysely transaction",
  );
}

function isPool(value: unknown): value is PgPoolLike {
  const pool = value as Partial<PgPoolLike> | null | undefined;
  return (
    typeof pool === "object" &&
    pool !== null &&
    typeof pool.query === "function" &&
    typeof pool.connect === "function" &&
    typeof pool.on === "function"
  );
}

function isKysely(value: unknown): value is KyselyInstance {
  const db = value as Partial<KyselyInstance> | null | undefined;
  return (
    typeof db === "object" &&
    db !== null &&
    typeof db.executeQuery === "function" &&
    typeof db.withoutPlugins === "function"
  );
}
