import {
  invalidArgument,
  type JobId,
  type Notifier,
  PORT_VERSION,
  readArgument,
  readSignal,
  type SettlementOutcome,
  show,
  type Task,
  type TaskHandler,
  VenturiError,
  type WorkerStore,
} from "@venturi/core";
import { systemClock } from "./clock.ts";
import { HandlerRegistry, type RegisterOptions } from "./handler-registry.ts";
import { type ResolvedWorkerOptions, resolveWorkerOptions, type WorkerOptions } from "./options.ts";
import { workSession } from "./session.ts";
import { Shutdown } from "./shutdown.ts";
import { Slots } from "./slots.ts";

/** How a worker is run. */
export interface RunOptions {
  /** Stops the worker when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** What a worker could not finish. */
export interface RunReport {
  /** Jobs that are still claimed, because the database could not be reached; other workers will recover them. */
  readonly unreleased: JobId[];
}

/** How many runs ended in which way. Released runs are not counted. */
export interface RunCounts {
  readonly completed: number;
  readonly paused: number;
  readonly retried: number;
  readonly dead: number;
}

/** Options may be left out altogether unless a state is needed. */
export type WorkerArguments<State> = undefined extends State
  ? [options?: WorkerOptions<State>]
  : [options: WorkerOptions<State> & { readonly state: State }];

/**
 * Claims jobs of the kinds registered on it and runs their handlers.
 *
 * @example
 * await using worker = new Worker(store, { state: app, concurrency: 16 })
 *   .register(SendEmail, sendEmail)
 *   .register(SyncContacts, syncContacts, { cap: 2 });
 * await worker.run({ signal });
 */
export interface Worker<State = undefined, Tx = never> {
  /**
   * Lets this worker claim jobs of a task, and run them with `handler`. Returns the worker, for the next `register`.
   *
   * Throws `invalid-argument` for what is no task, handler or option, and for a kind that is registered already; and
   * `already-run` once `run` has been called, or while `runOnce` is under way.
   */
  register<Payload, Carry>(
    task: Task<string, never, Payload, Carry>,
    handler: TaskHandler<Payload, Carry, State, Tx>,
    options?: RegisterOptions,
  ): this;
  /**
   * Claims and runs jobs until `signal` aborts or `stop` is called. Then it gives running handlers `shutdownTimeout` to
   * end, releases the rest, and resolves. Outages of the database are waited out.
   *
   * A worker runs only once: a second call rejects with `already-run`, and so does one while `runOnce` is under way. If
   * `stop` was called before, it resolves at once without claiming. Rejects with `not-migrated` where the database lacks
   * venturi's tables, and with `database` when the first connection fails for a reason that does not pass.
   */
  run(options?: RunOptions): Promise<RunReport>;
  /**
   * Runs the jobs that are due now, each at most once. Resolves when nothing runs and a claim brings nothing more. For
   * tests and serverless functions; may be called again.
   *
   * Rejects with `already-run` while this worker is running, with `closed` after `stop`, and with any error that keeps it
   * from starting: it does not wait for a database that cannot be reached.
   */
  runOnce(options?: RunOptions): Promise<RunCounts>;
  /**
   * Stops the worker as an aborted signal does, and resolves when it has stopped. It may be called at any time, and more
   * than once. Unlike after an aborted signal, the worker is closed for good. A handler must not await it, since it would
   * wait for itself.
   */
  stop(): Promise<void>;
  /** The same as `stop`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a {@link Worker} is made. */
export interface WorkerConstructor {
  /**
   * A worker whose handlers get a state. It does not connect yet. Throws `invalid-argument` naming the option that is unknown
   * or unacceptable.
   */
  // Without a default for `State`: the compiler would take that for what a state with methods has to be.
  new <State, Tx = never>(
    store: WorkerStore<Tx> & Partial<Notifier>,
    options: WorkerOptions<State> & { readonly state: State },
  ): Worker<State, Tx>;
  /** A worker whose handlers get no state. */
  new <State = undefined, Tx = never>(
    store: WorkerStore<Tx> & Partial<Notifier>,
    ...[options]: WorkerArguments<State>
  ): Worker<State, Tx>;
  readonly prototype: Worker;
}

/** Runs handlers; see {@link WorkerConstructor} for what it is made with. */
export const Worker = class Worker<State, Tx> {
  readonly #store: WorkerStore<Tx> & Partial<Notifier>;
  readonly #options: ResolvedWorkerOptions<unknown>;
  readonly #slots: Slots;
  readonly #registry: HandlerRegistry;
  /** The session in progress. */
  #current: { readonly shutdown: Shutdown; readonly ended: Promise<unknown> } | null = null;
  #hasRun = false;
  #hasWarnedOfConnections = false;
  #isStopped = false;

  constructor(store: WorkerStore<Tx> & Partial<Notifier>, options?: WorkerOptions<State>) {
    this.#store = readArgument("store", () => checkStore(store));
    this.#options = resolveWorkerOptions(options);
    const { concurrency, leaseMs, backstop } = this.#options;
    this.#slots = new Slots(concurrency);
    this.#registry = new HandlerRegistry({ leaseMs, backstop }, this.#slots);
  }

  register<Payload, Carry>(
    task: Task<string, never, Payload, Carry>,
    handler: TaskHandler<Payload, Carry, State, Tx>,
    options?: RegisterOptions,
  ): this {
    if (this.#hasRun || this.#current !== null) {
      throw new VenturiError(
        "already-run",
        "the worker has started: register every kind before run, and not while runOnce is under way",
      );
    }
    this.#registry.add(task, handler, options);
    return this;
  }

  async run(options: RunOptions = {}): Promise<RunReport> {
    const signal = readSignal(options, "run");
    this.#checkIdle();
    if (this.#hasRun) {
      throw new VenturiError(
        "already-run",
        "the worker has run already: make a new one to run again",
      );
    }
    this.#hasRun = true;
    if (this.#isStopped) return { unreleased: [] };
    return { unreleased: await this.#work({ signal, once: false }) };
  }

  async runOnce(options: RunOptions = {}): Promise<RunCounts> {
    const signal = readSignal(options, "runOnce");
    this.#checkIdle();
    if (this.#isStopped)
      throw new VenturiError("closed", "the worker was stopped: make a new one to run again");
    const counts = { completed: 0, paused: 0, retried: 0, dead: 0 };
    const onSettled = (outcome: SettlementOutcome): void => {
      if (outcome !== "released") counts[outcome] += 1;
    };
    await this.#work({ signal, once: true, onSettled });
    return counts;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#current?.shutdown.request();
    await this.#current?.ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #checkIdle(): void {
    if (this.#current === null) return;
    throw new VenturiError(
      "already-run",
      "the worker is running: wait for that to end, or make another one",
    );
  }

  /** Warns where handlers can take all connections of the pool, so that none is left to settle their runs with. */
  #warnOfConnections(): void {
    const { concurrency, logger } = this.#options;
    const { sharedConnections = Number.POSITIVE_INFINITY } = this.#store.capabilities;
    if (this.#hasWarnedOfConnections || sharedConnections > concurrency) return;
    this.#hasWarnedOfConnections = true;
    logger.warn(
      "the store shares a pool that is smaller than concurrency + 1: handlers that use it can keep the worker waiting; enlarge it, or give the worker a pool of its own",
      { connections: sharedConnections, concurrency },
    );
  }

  async #work(how: {
    readonly signal: AbortSignal | undefined;
    readonly once: boolean;
    readonly onSettled?: (outcome: SettlementOutcome) => void;
  }): Promise<JobId[]> {
    const { signal, once, onSettled = () => undefined } = how;
    if (this.#registry.kinds.length === 0) {
      const { logger, name } = this.#options;
      logger.warn("no task is registered: the worker has nothing to do and stops", { name });
      return [];
    }
    if (signal?.aborted) return [];
    this.#warnOfConnections();
    const shutdown = new Shutdown(systemClock, this.#options.shutdownTimeoutMs);
    const unfollow = shutdown.follow(signal);
    const work = workSession({
      store: this.#store,
      clock: systemClock,
      options: this.#options,
      registry: this.#registry,
      slots: this.#slots,
      shutdown,
      once,
      onSettled,
    });
    // Stopping waits for the end; how it ended is for the caller of run.
    this.#current = { shutdown, ended: work.catch(() => undefined) };
    try {
      return await work;
    } finally {
      unfollow();
      this.#current = null;
    }
  }
} as unknown as WorkerConstructor;

function checkStore<S extends WorkerStore<never> | WorkerStore<unknown>>(store: S): S {
  const given: Partial<WorkerStore> | null | undefined = store;
  if (typeof given?.claim !== "function" || typeof given.settle !== "function") {
    throw invalidArgument(
      "store",
      `is not a store (got ${show(store)})`,
      "pass a PostgresStore or another adapter",
    );
  }
  if (given.portVersion !== PORT_VERSION) {
    throw invalidArgument(
      "store",
      `has port version ${show(given.portVersion)}, this worker needs ${PORT_VERSION}`,
      "install versions of the store and the worker that belong together",
    );
  }
  return store;
}
