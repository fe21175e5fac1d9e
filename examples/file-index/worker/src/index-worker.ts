import type { Duration, Logger } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { IndexFile, IndexFolder } from "@venturi-examples/file-index-tasks";
import pg from "pg";
import { FileResults } from "./file-results.ts";
import { FolderResults } from "./folder-results.ts";
import { indexFile } from "./index-file.ts";
import { indexFolder } from "./index-folder.ts";
import { createIndexTables } from "./index-tables.ts";

export interface IndexWorkerOptions {
  readonly connectionString: string;
  readonly concurrency?: number;
  readonly workerTimeout?: Duration;
  readonly logger?: Logger;
}

export interface IndexWorker {
  /** Works until the signal aborts; see `Worker.run`. */
  run(signal: AbortSignal): ReturnType<Worker["run"]>;
  /** Ends the connections. */
  close(): Promise<void>;
}

/** Connects, makes what tables are missing, and registers the handlers. */
export async function createIndexWorker(options: IndexWorkerOptions): Promise<IndexWorker> {
  const { connectionString, concurrency = 32, workerTimeout = "30s", logger = console } = options;
  const store = await PostgresStore.connect({ connectionString, logger });
  await store.migrate();
  // The results have connections of their own, so that they never wait for the worker's.
  const pool = new pg.Pool({ connectionString, max: 4, application_name: "file-index results" });
  pool.on("error", (error) =>
    logger.warn("a results connection was lost", { error: error.message }),
  );
  await createIndexTables(pool);
  const app = {
    files: new FileResults(pool, `process ${process.pid}`),
    folders: new FolderResults(pool),
  };
  const worker = new Worker(store, {
    state: app,
    concurrency,
    workerTimeout,
    shutdownTimeout: "10s",
    // Folders come after all files; there is no endless stream of files that could starve them.
    priorityRatio: null,
    logger,
  })
    .register(IndexFile, indexFile)
    .register(IndexFolder, indexFolder, { cap: 16 });
  return {
    run: (signal) => worker.run({ signal }),
    async close() {
      await worker.stop();
      await pool.end();
      await store.close();
    },
  };
}
