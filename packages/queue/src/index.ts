export type { EnqueueItem, EnqueueOptions, JobOptions, WaitOptions } from "./enqueue.ts";
export { DEFAULT_QUEUE_OPTIONS, type QueueOptions } from "./options.ts";
export { type OperatorQueue, Queue, type TransactionQueue } from "./queue.ts";
export type { KyselyLike, SqlExecutor } from "./sql-executor.ts";
