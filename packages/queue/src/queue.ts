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
 * Enqueues jobs through whatever the application already has that can run SQL, or through a store.
 * Concurrent calls share statements by themselves; it owns nothing and needs no closing.
 *
 * The operator's verbs (`job`, `jobs`, `journal`, `retry`, `cancel` and their like) are on a queue over a store, an
 * {@link OperatorQueue}; a queue over a pool or another executor has none of them.
 */
export interface Queue<Tx = never> {
  /**
   * Stores one job and returns its id, or that of the pending job that it was merged into.
   *
   * Throws `invalid-argument`, `serialization` or `validation` before any SQL; `id-conflict`,
   * `not-migrated`, `database`; and `enqueue-unknown` when the connection was lost on the way:
   * repeat the call with the error's `id`.
   *
   * @example await queue.enqueue(SendEmail({ to, subject }), { delay: "1h" });
   */
  enqueue(job: UnsentJob, options?: EnqueueOptions): Promise<JobId>;
  /** As `enqueue`, for a job that is due at a moment. */
  enqueueAt(
    job: UnsentJob,
    runAt: Instant,
    options?: Omit<EnqueueOptions, "delay" | "runAt">,
  ): Promise<JobId>;
  /**
   * Stores all jobs or none, in one statement, and returns their ids in order; throws as `enqueue`
   * does. After `enqueue-unknown` repeat the call with the error's `ids`.
   *
   * @example await queue.enqueueMany([SendEmail(a), { job: SendEmail(b), delay: "1h" }]);
   */
  enqueueMany(items: readonly EnqueueItem[], options?: WaitOptions): Promise<JobId[]>;
  /**
   * Enqueues inside a transaction that the caller began and will end: what it rolls back was never
   * enqueued, and no worker sees or is woken for a job before it commits. Nothing is repeated here:
   * an error has ended the transaction, and `isRetryable` says whether it is worth beginning again.
   *
   * @example await queue.within(client).enqueue(SendEmail({ to, subject }));
   */
  within(tx: SqlExecutor | KyselyLike | Tx): TransactionQueue;
}

/** A queue inside a caller's transaction. */
export type TransactionQueue = Pick<Queue, "enqueue" | "enqueueAt" | "enqueueMany">;

/** A queue over a full store, which can also tell about its jobs. */
export interface OperatorQueue<Tx = never> extends Queue<Tx>, Operator {}

/** What a {@link Queue} can be made over. */
export interface QueueConstructor {
  /** Over a store, which has its own options but for the logger. */
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
