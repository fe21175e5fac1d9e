import {
  type BeatResult,
  type ClaimRequest,
  type ClaimResult,
  type CleanupRequest,
  type CompleteRequest,
  checkMembers,
  type EnqueueRequest,
  type ExtendLeaseRequest,
  type ExtendLeaseResult,
  type FindCandidatesRequest,
  type FindCandidatesResult,
  type FindStaleRequest,
  type HandBackRequest,
  invalidArgument,
  type JobQuery,
  type JobRecord,
  type JobRequest,
  type JournalEntry,
  type ListenRequest,
  type Logger,
  type Notifier,
  PORT_VERSION,
  type ProducerStore,
  type ReadJournalRequest,
  type RecoverRequest,
  readArgument,
  readSignal,
  type SettleRequest,
  type SettleVerdict,
  type Signalled,
  type StaleClaim,
  type Stats,
  type Store,
  type StoreCapabilities,
  type Subscription,
  toSignal,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type pg from "pg";
import { createAbortable } from "./abort.ts";
import { Claimer } from "./claimer.ts";
import { Claimers } from "./claimers.ts";
import { connectFailure } from "./connect-failure.ts";
import {
  connectionOf,
  createListenClient,
  createSource,
  type PostgresTransaction,
} from "./connections.ts";
import { Database, type SqlConnection } from "./database.ts";
import { Kinds } from "./kinds.ts";
import { Liveness } from "./liveness.ts";
import { migrate } from "./migrate.ts";
import type { Names } from "./names.ts";
import { type NotifierOptions, subscribe } from "./notifier.ts";
import type { OldPlace } from "./old-place.ts";
import { Operating } from "./operating.ts";
import {
  type BorrowOptions,
  type ConnectOptions,
  resolveOptions,
  splitOptions,
} from "./options.ts";
import { createPool, firstAnswer } from "./own-pool.ts";
import { createProducer } from "./producer.ts";
import { Settling } from "./settling.ts";
import { createStatements, type Statements } from "./statements.ts";

/**
 * The store that keeps jobs in PostgreSQL. Everything that queues and workers ask of it is a few statements over a `pg` pool
 * or a Kysely instance. One connection of the pool is enough for every operation; listening takes one more.
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
  readonly #abortable = createAbortable();
  readonly #kinds: Kinds;
  readonly #statements: Statements;
  readonly #settling: Settling;
  readonly #liveness: Liveness;
  readonly #operating: Operating;
  readonly #producer: ProducerStore;
  readonly #preparedStatements: boolean;
  readonly #listenClient: NotifierOptions["createClient"] | null;
  readonly #claimers = new Claimers(() => new Claimer(this.#database, this.#kinds, this.#names));
  readonly #subscriptions = new Set<Subscription>();

  /**
   * Makes a store over a pool or a Kysely instance of the application's, which the application ends itself. It does not
   * connect yet. Throws `invalid-argument` naming the option that is unknown or unacceptable.
   */
  constructor(options: BorrowOptions);
  /** @internal */
  constructor(options: BorrowOptions, owned: { readonly pool: pg.Pool });
  constructor(options: BorrowOptions, owned?: { readonly pool: pg.Pool }) {
    const resolved = resolveOptions(options, ["pool", "db"]);
    const argument = readArgument("pool", () => options.pool) === undefined ? "db" : "pool";
    const source = readArgument(argument, () =>
      createSource(options, resolved, owned !== undefined),
    );
    this.#names = resolved.names;
    this.#logger = resolved.logger;
    this.#preparedStatements = resolved.preparedStatements;
    this.#database = new Database(source, resolved.names.prefix, resolved.logger);
    this.#kinds = new Kinds(this.#database, resolved.names, resolved.logger);
    this.#statements = createStatements(resolved.names);
    const onPutBack = (place: OldPlace | null) => this.#claimers.putBack(place);
    this.#settling = new Settling(this.#database, this.#statements, onPutBack);
    this.#liveness = new Liveness(this.#database, this.#statements, onPutBack);
    this.#operating = new Operating(this.#database, this.#statements, this.#names, this.#abortable);
    this.#listenClient = createListenClient(options, resolved);
    const sharedConnections = owned === undefined ? options.pool?.options?.max : undefined;
    this.capabilities = {
      transactions: true,
      notifications: this.#listenClient !== null,
      ...(typeof sharedConnections === "number" ? { sharedConnections } : {}),
    };
    this.#producer = this.#createProducer({
      run: (statement, values) => this.#database.runUnmapped(statement, values),
    });
  }

  /**
   * Makes a store with a pool of its own, and resolves when the server has answered.
   *
   * Rejects with `invalid-argument` for a bad option, and with `database` where no server answers or lets the pool in.
   */
  static async connect(options: ConnectOptions): Promise<PostgresStore> {
    const { url, max, signal, rest, ssl } = splitOptions(options);
    toSignal(signal)?.throwIfAborted();
    const { pool, hosts } = createPool({ url, max, ssl });
    const store = new PostgresStore({ ...rest, pool }, { pool });
    try {
      await store.#abortable(() => firstAnswer(pool, hosts), signal);
      return store;
    } catch (error) {
      const closed = store.close();
      // A server that does not answer need not be waited for to give up on it.
      if (signal?.aborted) throw signal.reason;
      await closed;
      throw connectFailure(error, store.#names.prefix);
    }
  }

  /**
   * Creates or upgrades the tables and functions. Many processes may call it at once. A signal ends the waiting; steps that
   * have begun are carried out all the same.
   *
   * Rejects with `migration` when a step cannot be applied, and with `database` when the database cannot be asked.
   */
  async migrate(options: Signalled = {}): Promise<void> {
    const signal = readSignal(options, "migrate");
    await this.#abortable(() => migrate(this.#database, this.#names), signal);
  }

  /**
   * Changes settings that are kept in the database, for all processes: the functions that producers call read them.
   * `notify` says whether notifications are sent to workers; they are at first.
   *
   * Rejects with `invalid-argument`, `not-migrated` or `database`.
   */
  async configure(settings: { readonly notify: boolean }, options: Signalled = {}): Promise<void> {
    const notify = readArgument("settings", () => {
      const given = settings?.notify;
      if (typeof given !== "boolean") {
        throw invalidArgument(
          "notify",
          "must be true or false",
          "pass { notify: false } to stop notifications",
        );
      }
      checkMembers("settings", settings, ["notify"], "configure");
      return given;
    });
    const signal = readSignal(options, "configure");
    const { configure } = this.#statements;
    const values = [notify ? 1 : 0];
    await this.#abortable(
      () => this.#database.run(configure, values, "change the settings"),
      signal,
    );
  }

  /**
   * Closes the store's subscriptions, waits for what is under way, and ends its pool if that is its own. Calls after it
   * reject with `closed`; closing again changes nothing.
   */
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

  findCandidates(request: FindCandidatesRequest): Promise<FindCandidatesResult> {
    return this.#producer.findCandidates(request);
  }

  within(tx: PostgresTransaction): ProducerStore {
    return this.#createProducer(connectionOf(tx, this.#preparedStatements));
  }

  #createProducer(connection: SqlConnection): ProducerStore {
    const { prefix } = this.#names;
    const { capabilities } = this;
    return createProducer({
      statements: this.#statements,
      capabilities,
      prefix,
      connection,
      abortable: this.#abortable,
    });
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────────────────────

  async startWorker({
    logger,
    ...request
  }: WorkerRegistration & Signalled & { readonly logger?: Logger | undefined }): Promise<{
    readonly worker: WorkerId;
  }> {
    const starting = async () => {
      await this.#kinds.loadAnew(request.kinds, logger);
      return this.#liveness.startWorker(request);
    };
    return { worker: await this.#abortable(starting, request.signal) };
  }

  async stopWorker({ worker, signal }: { readonly worker: WorkerId } & Signalled): Promise<void> {
    this.#claimers.drop(worker);
    await this.#abortable(() => this.#liveness.stopWorker(worker), signal);
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    return this.#abortable(() => this.#claimers.of(request.worker).claim(request), request.signal);
  }

  async settle(request: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    return {
      verdicts: await this.#abortable(() => this.#settling.settle(request), request.signal),
    };
  }

  async handBack(
    request: HandBackRequest,
  ): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    return {
      verdicts: await this.#abortable(() => this.#settling.handBack(request), request.signal),
    };
  }

  async extendLease(
    request: ExtendLeaseRequest,
  ): Promise<{ readonly results: readonly ExtendLeaseResult[] }> {
    return {
      results: await this.#abortable(() => this.#settling.extendLease(request), request.signal),
    };
  }

  async complete(tx: PostgresTransaction, request: CompleteRequest): Promise<void> {
    const connection = connectionOf(tx, this.#preparedStatements);
    try {
      await this.#settling.complete(connection, request);
    } catch (error) {
      throw this.#database.fail(error, "complete a run");
    }
  }

  beat(
    request: WorkerRegistration & { readonly worker: WorkerId } & Signalled,
  ): Promise<BeatResult> {
    return this.#abortable(() => this.#liveness.beat(request), request.signal);
  }

  async findStale(request: FindStaleRequest): Promise<{ readonly claims: readonly StaleClaim[] }> {
    return {
      claims: await this.#abortable(() => this.#liveness.findStale(request), request.signal),
    };
  }

  async recover(request: RecoverRequest): Promise<{ readonly applied: readonly boolean[] }> {
    return {
      applied: await this.#abortable(() => this.#liveness.recover(request), request.signal),
    };
  }

  listen({ onWake, logger = this.#logger, probeMs }: ListenRequest): Subscription {
    this.#database.refuseIfClosed();
    const createClient = this.#listenClient;
    if (createClient === null)
      return { listening: Promise.resolve(), close: () => Promise.resolve() };
    const subscription = subscribe(
      {
        createClient,
        channel: this.#names.channel,
        ...(probeMs === undefined ? {} : { probeMs }),
      },
      onWake,
      logger,
    );
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

  async findJob({ id, signal }: JobRequest): Promise<{ readonly job: JobRecord | null }> {
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
    return { jobs: await this.#operating.queryJobs(query) };
  }

  async readJournal(
    request: ReadJournalRequest,
  ): Promise<{ readonly entries: readonly JournalEntry[] }> {
    return { entries: await this.#operating.readJournal(request) };
  }

  async stats({ signal }: Signalled = {}): Promise<{
    readonly stats: Stats;
  }> {
    return { stats: await this.#operating.stats(signal) };
  }

  async cleanup(request: CleanupRequest): Promise<{ readonly deleted: number }> {
    return { deleted: await this.#operating.cleanup(request) };
  }

  async retry(request: JobRequest): Promise<{ readonly applied: boolean }> {
    return { applied: await this.#operating.apply("retry", request) };
  }

  async cancel(request: JobRequest): Promise<{ readonly applied: boolean }> {
    return { applied: await this.#operating.apply("cancel", request) };
  }
}
