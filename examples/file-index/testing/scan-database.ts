import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { JobId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { enqueueListing, listFiles } from "@venturi-examples/file-index-producer";
import { textToPath } from "@venturi-examples/file-index-tasks";
import type pg from "pg";
import { hasUnfinishedJobs } from "../job-summary.ts";
import type { ExpectedFile } from "./generated-tree.ts";

export interface EnqueuedScan {
  readonly scan: string;
  readonly ids: readonly JobId[];
}

/** Lists a directory and enqueues it, as the producer does. */
export async function enqueueDirectory(pool: pg.Pool, root: string): Promise<EnqueuedScan> {
  const scan = randomBytes(8).toString("hex");
  const directory = Buffer.from(root);
  const listing = await listFiles(directory);
  const ids = await enqueueListing(new Queue(pool), { scan, root: directory, listing });
  return { scan, ids };
}

/** How many workers have begun to ask for jobs, or are about to. */
export async function registeredWorkers(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ workers: number }>(
    "select count(*)::int as workers from venturi_workers where stopping_at is null",
  );
  return rows[0]?.workers ?? 0;
}

/** Waits until every job of the scan has ended. */
export async function scanEnded(pool: pg.Pool, scan: string): Promise<void> {
  const queue = new Queue(new PostgresStore({ pool }));
  while (await hasUnfinishedJobs(queue, [scan])) await sleep(20);
}

/** The files of a scan that were indexed, by the bytes of their path in hexadecimal. */
export async function indexedFiles(
  pool: pg.Pool,
  scan: string,
): Promise<Map<string, ExpectedFile>> {
  const { rows } = await pool.query<ExpectedFile & { path: string }>(
    `select path, bytes::float8, sha256, lines::float8, words::float8
       from file_index_files where scan = $1 and state = 'indexed'`,
    [scan],
  );
  return new Map(rows.map(({ path, ...found }) => [textToPath(path).toString("hex"), found]));
}

/** How many runs of each outcome each worker has in the journal. */
export async function runsByWorker(pool: pg.Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; runs: number }>(
    `select w.name, count(*)::int as runs from venturi_journal e
       join venturi_workers w on w.id = e.worker_id group by w.name`,
  );
  return new Map(rows.map(({ name, runs }) => [name, runs]));
}
