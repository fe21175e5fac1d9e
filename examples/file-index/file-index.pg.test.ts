import { setTimeout as sleep } from "node:timers/promises";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GeneratedTree, generateTree } from "./testing/generated-tree.ts";
import {
  type EnqueuedScan,
  enqueueDirectory,
  indexedFiles,
  registeredWorkers,
  runsByWorker,
  scanEnded,
} from "./testing/scan-database.ts";
import { startWorkerProcesses, stopWorkerProcess } from "./worker-process.ts";

const database = await testDatabase();
const { pool } = database;
let tree: GeneratedTree;
let scanned: EnqueuedScan;

beforeAll(async () => {
  tree = await generateTree(30, 20);
  const workers = await startWorkerProcesses(2, { databaseUrl: database.url, concurrency: 4 });
  // A process may take seconds to start, and one alone is soon done with everything.
  while ((await registeredWorkers(pool)) < 2) await sleep(20);
  scanned = await enqueueDirectory(pool, tree.root);
  await scanEnded(pool, scanned.scan);
  await Promise.all(workers.map(stopWorkerProcess));
  expect(await Promise.all(workers.map(({ ended }) => ended))).toEqual([0, 0]);
}, 60_000);
afterAll(() => tree.remove());

it("every file is indexed, and its counts equal those of an independent count", async () => {
  expect(await indexedFiles(pool, scanned.scan)).toEqual(tree.files);
});

it("every folder is summed up to the totals of its files", async () => {
  const { rows } = await pool.query(
    `select count(*)::int as folders, sum(files)::int as files, sum(indexed)::int as indexed,
            sum(bytes)::float8 as bytes, sum(lines)::float8 as lines, sum(words)::float8 as words
       from file_index_folders where scan = $1`,
    [scanned.scan],
  );
  const files = [...tree.files.values()];
  const sum = (member: "bytes" | "lines" | "words") =>
    files.reduce((total, file) => total + file[member], 0);
  expect(rows).toEqual([
    {
      folders: tree.folders.size,
      files: files.length,
      indexed: files.length,
      bytes: sum("bytes"),
      lines: sum("lines"),
      words: sum("words"),
    },
  ]);
});

it("every job has its journal, which ends with a completed run", async () => {
  const queue = new Queue(new PostgresStore({ pool }));
  expect(scanned.ids).toHaveLength(tree.files.size + tree.folders.size);
  for (const id of scanned.ids) {
    expect((await queue.journal(id)).at(-1)).toMatchObject({ outcome: "completed" });
  }
  await expectInvariants(pool, { enqueued: scanned.ids });
});

it("two worker processes share the work", async () => {
  const runs = [...(await runsByWorker(pool)).values()];
  expect(runs).toHaveLength(2);
  for (const each of runs) expect(each).toBeGreaterThan(tree.files.size / 20);
});
