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
import {
  connectionOf,
  createListenClient,
  createSource,
  type PostgresTransaction,
} from "./connections.ts";
import { Database } from "./database.ts";
import { Kinds } from "./kinds.ts";
import { migrate } from "./migrate.ts";
import type { Names } from "./names.ts";
import { type NotifierOptions, subscribe } from "./notifier.ts";
import {
  type BorrowOptions,
  type ConnectOptions,
  connectionString,
  maxConnections,
  resolveOptions,
} from "./options.ts";
import { createProducer } from "./producer.ts";
import { toJobRecord, toJournalEntry, toStaleClaim } from "./row-mapping.ts";
import { Settling } from "./settling.ts";
import { queryJobs } from "./sql/query-jobs.ts";
import { createStatements, type Statements } from "./statements.ts";

/** Of the store's own pool: a network that swallows everything must not be waited for without limit. */
const connectTimeoutMs = 10_000;

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
  readonly #settling: Settling;
  readonly #producer: ProducerStore;
  readonly #preparedStatements: boolean;
  readonly #listenClient: NotifierOptions["createClient"] | null;
  readonly #claimers = new Map<WorkerId, Claimer>();
  readonly #subscriptions = new Set<Subscription>();

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
    this.#settling = new Settling(this.#database, this.#statements);
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
    const { connectionString: url, maxConnections: max, ...rest } = options ?? {};
    const { ssl } = resolveOptions(rest, ["connectionString", "maxConnections"]);
    const config: pg.PoolConfig = {
      connectionString: connectionString("connectionString", url),
      max: maxConnections(max),
      keepAlive: true,
      connectionTimeoutMillis: connectTimeoutMs,
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
    const subscriptions = [...this.#subscriptions];
    this.#subscriptions.clear();
    await Promise.all([
      ...subscriptions.map((subscription) => subscription.close()),
      this.#database.close(),
    ]);
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

  async settle(request: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    return { verdicts: await this.#settling.settle(request) };
  }

  async handBack(
    request: HandBackRequest,
  ): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    return { verdicts: await this.#settling.handBack(request) };
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
    this.#database.refuseIfClosed();
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
