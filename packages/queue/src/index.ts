export type { EnqueueItem, EnqueueOptions, JobOptions, WaitOptions } from "./enqueue.ts";
export type { Operator } from "./operator.ts";
export { DEFAULT_QUEUE_OPTIONS, type QueueOptions, type ResolvedQueueOptions } from "./options.ts";
export {
  type OperatorQueue,
  Queue,
  type QueueConstructor,
  type TransactionQueue,
} from "./queue.ts";
export type { KyselyLike, SqlExecutor } from "./sql-executor.ts";
