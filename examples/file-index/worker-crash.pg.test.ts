import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { generateTree } from "./testing/generated-tree.ts";
import { enqueueDirectory, indexedFiles, scanEnded } from "./testing/scan-database.ts";
import { startWorkerProcesses, stopWorkerProcess } from "./worker-process.ts";

const database = await testDatabase();
const { pool } = database;
const workerTimeoutMs = 2_000;

/** Waits until the worker of a process holds claims; returns their runs and the database's time. */
async function claimsOf(pid: number | undefined): Promise<{ ids: string[]; now: Date }> {
  for (;;) {
    const { rows } = await pool.query<{ job_id: string; now: Date }>(
      `select q.job_id, clock_timestamp() as now from venturi_queue q
         join venturi_workers w on w.id = q.claimed_by where w.name like '%:' || $1 || ':%'`,
      [pid],
    );
    const [first] = rows;
    if (first !== undefined) return { ids: rows.map((row) => row.job_id), now: first.now };
    await sleep(5);
  }
}

it("kill -9 of a worker loses nothing: others recover its jobs within workerTimeout + 2 s", async () => {
  const tree = await generateTree(20, 20);
  // Without content on the disk, but long to read: what the worker is at when it is killed.
  for (let index = 0; index < 6; index += 1) {
    const file = await open(join(tree.root, `0-long-${index}`), "w");
    await file.truncate(100_000_000);
    await file.close();
  }
  try {
    const { scan, ids } = await enqueueDirectory(pool, tree.root);
    const [victim, survivor] = await startWorkerProcesses(2, {
      databaseUrl: database.url,
      concurrency: 2,
      workerTimeout: `${workerTimeoutMs}ms`,
    });
    if (victim === undefined || survivor === undefined) throw new Error("two were started");
    await claimsOf(victim.child.pid);
    victim.child.kill("SIGKILL");
    expect(await victim.ended).toBe("SIGKILL");
    const lost = await claimsOf(victim.child.pid);
    await scanEnded(pool, scan);
    await stopWorkerProcess(survivor);

    const { rows } = await pool.query<{ job_id: string; recorded_at: Date }>(
      "select job_id, recorded_at from venturi_journal where outcome = 's'",
    );
    expect(rows.map((row) => row.job_id).sort()).toEqual([...lost.ids].sort());
    for (const { recorded_at } of rows) {
      expect(Number(recorded_at) - Number(lost.now)).toBeLessThan(workerTimeoutMs + 2_000);
    }
    const indexed = await indexedFiles(pool, scan);
    for (const [path, expected] of tree.files) expect(indexed.get(path)).toEqual(expected);
    expect(indexed.size).toBe(tree.files.size + 6);
    await expectInvariants(pool, { enqueued: ids });
  } finally {
    await tree.remove();
  }
}, 60_000);
