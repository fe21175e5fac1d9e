export type { Handler, JobContext, TaskHandler } from "@venturi/core";
export type { RegisterOptions } from "./handler-registry.ts";
export { DEFAULT_WORKER_OPTIONS, type PanicPolicy, type WorkerOptions } from "./options.ts";
export {
  type RunCounts,
  type RunOptions,
  type RunReport,
  Worker,
  type WorkerArguments,
  type WorkerConstructor,
} from "./worker.ts";
