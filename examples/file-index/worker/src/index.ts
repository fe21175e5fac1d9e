export type { App } from "./app.ts";
export type { FileResult } from "./file-results.ts";
export type { FolderPage, FolderTotals } from "./folder-results.ts";
export { indexFile } from "./index-file.ts";
export { indexFolder } from "./index-folder.ts";
export { createIndexWorker, type IndexWorker, type IndexWorkerOptions } from "./index-worker.ts";
