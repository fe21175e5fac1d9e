import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { enqueueListing, type Listing, listFiles } from "@venturi-examples/file-index-producer";
import pg from "pg";
import { count, reportLines } from "./demo-report.ts";
import { hasUnfinishedJobs, summariseJobs } from "./job-summary.ts";
import { ProgressLine } from "./progress-line.ts";
import { readProgress, type ScanProgress } from "./scan-progress.ts";
import { makeTroubledFiles } from "./troubled-files.ts";
import { startWorkerProcesses, stopWorkerProcess, type WorkerProcess } from "./worker-process.ts";

export interface DemoRequest {
  readonly databaseUrl: string;
  readonly directory: string;
  readonly workers: number;
  /** Whether the database goes with the demo's end. */
  readonly isTemporary: boolean;
  readonly signal: AbortSignal;
}

interface Scan {
  readonly scan: string;
  readonly root: Buffer;
  readonly listing: Listing;
}

/** Migrates, starts workers, enqueues a directory's files and shows what becomes of them. */
export async function runDemo(request: DemoRequest): Promise<void> {
  const { databaseUrl, workers: workerCount, isTemporary, signal } = request;
  const pool = new pg.Pool({ connectionString: databaseUrl, application_name: "file-index demo" });
  const store = new PostgresStore({ pool });
  const queue = new Queue(store);
  const line = new ProgressLine();
  const troubled = await makeTroubledFiles();
  const workers: WorkerProcess[] = [];
  try {
    await store.migrate();
    workers.push(...(await startWorkerProcesses(workerCount, { databaseUrl })));
    const running = workerCount === 1 ? "worker process is" : "worker processes are";
    console.log(`${workerCount} ${running} running`);

    const directory = resolve(request.directory);
    const root = Buffer.from(directory);
    const listing = await listFiles(root, signal);
    console.log(
      `${count(listing.fileCount)} files in ${count(listing.folders.length)} folders of ${directory}`,
    );
    console.log("and 2 more that go wrong on purpose: one vanishes, one becomes a folder");
    const scan = randomBytes(8).toString("hex");
    const scans = [
      { scan: `${scan}-trouble`, root: troubled.root, listing: troubled.listing },
      { scan, root, listing },
    ];
    const names = scans.map((each) => each.scan);

    const startedAt = performance.now();
    let isEnqueued = false;
    const enqueueing = enqueueAll(scans).then(() => {
      isEnqueued = true;
    });
    const [progress] = await Promise.all([watch(), enqueueing]);
    const elapsedMs = performance.now() - startedAt;
    line.end();
    const summary = await summariseJobs(queue, names);
    for (const text of reportLines({ progress, summary, elapsedMs })) console.log(text);

    async function enqueueAll(all: readonly Scan[]): Promise<void> {
      for (const each of all) await enqueueListing(queue, { ...each, signal });
    }

    async function watch(): Promise<ScanProgress> {
      for (;;) {
        const now = await readProgress(pool, names);
        line.show(progressText(now));
        if (isEnqueued && !(await hasUnfinishedJobs(queue, names)))
          return readProgress(pool, names);
        if (workers.every(({ hasEnded }) => hasEnded())) throw new Error("no worker is left");
        await sleep(250, undefined, { signal });
      }
    }

    function progressText({ indexed, givenUp, failing, retries, folders }: ScanProgress): string {
      const perSecond = (indexed * 1000) / (performance.now() - startedAt);
      const all = scans.map((each) => each.listing);
      const files = all.reduce((sum, { fileCount }) => sum + fileCount, 0);
      const allFolders = all.reduce((sum, each) => sum + each.folders.length, 0);
      return [
        `files ${count(indexed)} of ${count(files)}`,
        `folders ${count(folders)} of ${count(allFolders)}`,
        `retries ${retries}`,
        `given up ${givenUp}`,
        `failing ${failing}`,
        `${count(perSecond)} files/s`,
      ].join(" · ");
    }
  } finally {
    line.end();
    if (signal.aborted) {
      const rest = isTemporary ? "goes with this database" : "stays in the database";
      console.log(`stopping: runs may finish, the rest ${rest}`);
    }
    await Promise.all(workers.map(stopWorkerProcess));
    await troubled.remove();
    await store.close();
    await pool.end();
  }
}
