export type { Handler, TaskHandler } from "./handler.ts";
export type { RegisterOptions } from "./handler-registry.ts";
export type { JobContext } from "./job-context.ts";
export { DEFAULT_WORKER_OPTIONS, type WorkerOptions } from "./options.ts";
export {
  type RunCounts,
  type RunOptions,
  type RunReport,
  Worker,
  type WorkerArguments,
} from "./worker.ts";
