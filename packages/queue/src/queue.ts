import {
  type Instant,
  type JobId,
  type ProducerStore,
  readArgument,
  type Store,
  type UnsentJob,
} from "@venturi/core";
import type { Backend } from "./backend.ts";
import type { EnqueueItem, EnqueueOptions, WaitOptions } from "./enqueue.ts";
import { createOperator, type Operator } from "./operator.ts";
import type { QueueOptions } from "./options.ts";
import { Producer } from "./producer.ts";
import { sqlBackend } from "./sql-backend.ts";
import type { KyselyLike, SqlExecutor } from "./sql-executor.ts";
import { isOperatorStore, isProducerStore, storeBackend } from "./store-backend.ts";

/**
 * Enqueues jobs, through whatever the application has that can run SQL, or through a store. Concurrent calls share
 * statements by themselves. A queue owns nothing and needs no closing.
 *
 * A queue over a store is an {@link OperatorQueue}: it can also look up jobs and change them (`job`, `jobs`, `journal`,
 * `stats`, `cleanup`, `retry`, `cancel`). A queue over a pool or another executor cannot.
 */
export interface Queue<Tx = never> {
  /**
   * Stores one job and returns its id, or that of the pending job that it was merged into.
   *
   * Rejects with `invalid-argument`, `serialization` or `validation` before any SQL is sent; with `merge`, `id-conflict`,
   * `not-migrated` or `database`; and with `enqueue-unknown` when the connection was lost before the answer came: then
   * repeat the call with the error's `id`.
   *
   * @example await queue.enqueue(SendEmail({ to, subject }), { delay: "1h" });
   */
  enqueue(job: UnsentJob, options?: EnqueueOptions): Promise<JobId>;
  /** As `enqueue`, for a job that is due at a moment; a time in the past means now. */
  enqueueAt(
    job: UnsentJob,
    runAt: Instant,
    options?: Omit<EnqueueOptions, "delay" | "runAt">,
  ): Promise<JobId>;
  /**
   * Stores all jobs or none of them, in one statement, and returns their ids in order. Rejects as `enqueue` does; after
   * `enqueue-unknown` repeat the call with the error's `ids`.
   *
   * @example await queue.enqueueMany([SendEmail(a), { job: SendEmail(b), delay: "1h" }]);
   */
  enqueueMany(items: readonly EnqueueItem[], options?: WaitOptions): Promise<JobId[]>;
  /**
   * A queue inside a transaction that the caller has begun and will end. After a rollback its jobs never existed; workers
   * see them, and are woken for them, when the transaction is committed. It repeats nothing: an error has ended the
   * transaction, and `isRetryable` says whether it is worth beginning again.
   *
   * Throws `invalid-argument` for a pool and for anything else that is no transaction.
   *
   * @example await queue.within(client).enqueue(SendEmail({ to, subject }));
   */
  within(tx: SqlExecutor | KyselyLike | Tx): TransactionQueue;
}

/** A queue inside a caller's transaction. */
export type TransactionQueue = Pick<Queue, "enqueue" | "enqueueAt" | "enqueueMany">;

/** A queue over a full store, which can also look up jobs and change them. */
export interface OperatorQueue<Tx = never> extends Queue<Tx>, Operator {}

/** What a {@link Queue} can be made over. */
export interface QueueConstructor {
  /** Over a store. Only the logger is an option here; all others are the store's. */
  new <Tx>(store: Store<Tx>, options?: Pick<QueueOptions, "logger">): OperatorQueue<Tx>;
  /**
   * Over a `pg` Pool, Client or PoolClient, a Kysely instance or transaction, an executor of your
   * own, or a store that only produces. Throws `invalid-argument` for anything else.
   */
  // Of two overloads the compiler first tries which one an argument fits without leaving out
  // optional members. "~lean" makes it leave out one here too, so that a full store goes above.
  new (
    producer: (ProducerStore & { readonly "~lean"?: never }) | SqlExecutor | KyselyLike,
    options?: QueueOptions,
  ): Queue;
  readonly prototype: Queue;
}

/** Enqueues jobs; see {@link QueueConstructor} for what it can be made over. */
export const Queue = class Queue extends Producer {
  readonly #backend: Backend;

  constructor(producer: unknown, options?: QueueOptions) {
    const backend = readArgument("producer", () =>
      isProducerStore(producer) ? storeBackend(producer, options) : sqlBackend(producer, options),
    );
    super(backend.lanes);
    this.#backend = backend;
    // A lean queue has no verbs that it could not carry out.
    if (isProducerStore(producer) && isOperatorStore(producer))
      Object.assign(this, createOperator(producer));
  }

  within(tx: unknown): TransactionQueue {
    return new Producer(readArgument("tx", () => this.#backend.lanesWithin(tx)));
  }
} as unknown as QueueConstructor;
