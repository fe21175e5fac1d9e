export type { App } from "./app.ts";
export { createIndexWorker, type IndexWorker, type IndexWorkerOptions } from "./index-worker.ts";
