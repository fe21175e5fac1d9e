import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Add } from "./testing/adding.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const operator = new Queue(store);

/** By each producer; the long form is `tooling/proofs/merge-sum.mjs`. */
const additions = Number(process.env["MERGE_SUM_ADDITIONS"] ?? 4);

/** What so many producers of one process add: 1, 2, 3 and so on by each, of which one in eight rolls back. */
function committedBy(producers: number): number {
  let sum = 0;
  for (let producer = 0; producer < producers; producer += 1)
    for (let n = 1; n <= additions; n += 1) if ((n + producer) % 8 !== 0) sum += n;
  return sum;
}

async function addElsewhere(producers: number): Promise<number> {
  const script = fileURLToPath(new URL("./testing/adding-producer.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=@venturi/source",
    "--import",
    "tsx",
    script,
    database.url,
    String(producers),
    String(additions),
  ]);
  return Number(stdout);
}

async function pendingSum(key: string): Promise<{ jobs: number; sum: number }> {
  const { jobs } = await operator.jobs({ kind: "add", status: "pending" });
  const payloads = jobs.map(({ payload }) => payload as { key: string; n: number });
  const ofKey = payloads.filter((payload) => payload.key === key);
  return { jobs: ofKey.length, sum: ofKey.reduce((sum, { n }) => sum + n, 0) };
}

it("50 producers in several processes add to one counter exactly, though some transactions roll back", async () => {
  const startedAt = performance.now();
  const processes = [13, 13, 12, 12];
  const sums = await Promise.all(processes.map(addElsewhere));
  const sum = sums.reduce((a, b) => a + b, 0);
  const held = await pendingSum("sum");
  if (additions > 4) {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const { rows } = await database.pool.query("select count(*)::int as n from venturi_journal");
    console.log(
      `added ${sum}, held ${held.sum} by ${held.jobs} job, ${rows[0].n} merges, ${seconds} s`,
    );
  }
  expect(sums).toEqual(processes.map(committedBy));
  expect(held).toEqual({ jobs: 1, sum });
  await expectInvariants(database.pool);
}, 3_600_000);

it("64 callers of one queue share statements instead of racing", async () => {
  const statements: string[] = [];
  const queue = new Queue({
    query: (text, params) => {
      statements.push(text);
      return database.pool.query(text, params);
    },
  });
  const ids = await Promise.all(
    Array.from({ length: 64 }, (_, n) => queue.enqueue(Add({ key: "one", n }))),
  );
  expect(new Set(ids).size).toBe(1);
  expect(await pendingSum("one")).toEqual({ jobs: 1, sum: (63 * 64) / 2 });
  expect(statements.length).toBeLessThanOrEqual(4);
});

it("nothing is lost while a worker claims what is merged into", async () => {
  const { worker } = await store.startWorker({
    name: "racing",
    kinds: ["add"],
    pollMaxMs: 60_000,
    workerTimeoutMs: 60_000,
    shortestLeaseMs: 60_000,
  });
  const kinds = [{ kind: "add", limit: 100, leaseMs: 60_000, backstop: null }];
  let ran = 0;
  let producing = true;
  const run = async () => {
    const turn = { counter: 0, ratio: null };
    const { jobs } = await store.claim({ worker, limit: 100, kinds, turn });
    for (const { payload } of jobs) {
      const { key, n } = JSON.parse(payload);
      if (/^k\d$/.test(key)) ran += n;
    }
    const settlements = jobs.map(({ id, runCount }) => ({
      jobId: id,
      runCount,
      outcome: "completed" as const,
      delayMs: 0,
      runAt: null,
      carry: null,
      note: null,
      attachment: null,
      detail: null,
    }));
    const { verdicts } = await store.settle({ worker, settlements });
    expect(verdicts.every((verdict) => verdict === "applied")).toBe(true);
  };
  const working = (async () => {
    while (producing) await run();
    // A claim may pass over what others had locked.
    while ((await operator.stats()).pendingByKind["add"] !== undefined) await run();
  })();
  const produce = async () => {
    const queue = new Queue(database.pool);
    for (let n = 0; n < 100; n += 1) {
      const id = await queue.enqueue(Add({ key: `k${n % 10}`, n: 1 }));
      expect(await operator.job(id)).not.toBeNull();
    }
  };
  await Promise.all([1, 2, 3, 4].map(produce));
  producing = false;
  await working;
  expect(ran).toBe(400);
  await expectInvariants(database.pool);
}, 60_000);
