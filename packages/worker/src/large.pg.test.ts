import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, expect, test } from "vitest";
import { Worker } from "./index.ts";

const { url, pool } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const queue = new Queue(store);

expectNoWarnings();
afterAll(() => store.close());

test("a payload of 20 MB is enqueued and run, with an attachment of 2 MB, and a small job of another kind does not feel it", async () => {
  const text = "x".repeat(20_000_000);
  const Large = defineTask({ kind: "large", payload: v.string() });
  const Small = defineTask({ kind: "small", payload: v.number() });
  const id = await queue.enqueue(Large(text));
  await queue.enqueue(Small(1));
  const { worker } = await store.startWorker({
    name: "small",
    kinds: ["small"],
    pollMaxMs: 1,
    workerTimeoutMs: 60_000,
    shortestLeaseMs: 60_000,
  });
  const kinds = [{ kind: "small", limit: 1, leaseMs: 60_000, backstop: null }];
  const startedAt = performance.now();
  const { jobs } = await store.claim({
    worker,
    limit: 1,
    kinds,
    turn: { counter: 0, ratio: null },
  });
  expect(performance.now() - startedAt).toBeLessThan(500);
  expect(jobs).toHaveLength(1);
  let received = "";
  const large = new Worker(store).register(Large, (payload, ctx) => {
    received = payload;
    ctx.attach(payload.slice(0, 2_000_000));
  });
  expect(await large.runOnce()).toMatchObject({ completed: 1 });
  expect(received).toBe(text);
  const [entry] = await queue.journal(id);
  expect(entry?.attachment).toHaveLength(2_000_000);
});

test("a worker may know five thousand kinds", async () => {
  const worker = new Worker(store);
  const tasks = Array.from({ length: 5_000 }, (_, n) =>
    defineTask({ kind: `kind ${n}`, payload: v.number() }),
  );
  for (const task of tasks) worker.register(task, () => undefined);
  const some = tasks.filter((_, n) => n % 1_000 === 0);
  await queue.enqueueMany(some.map((task) => task(1)));
  expect(await worker.runOnce()).toMatchObject({ completed: some.length });
});

test("entries beyond two thousand million keep their order, and are counted as numbers", async () => {
  await pool.query("alter sequence venturi_journal_entry_no_seq restart with 2147483640");
  const Task = defineTask({ kind: "numbered", payload: v.number(), backstop: null });
  const id = await queue.enqueue(Task(1));
  const worker = new Worker(store).register(Task, () => {
    throw new Error("again");
  });
  for (let run = 0; run < 10; run += 1) {
    await worker.runOnce();
    await pool.query("update venturi_queue set visible_at = now()");
  }
  expect(await queue.cancel(id)).toBe(true);
  const journal = await queue.journal(id);
  expect(journal.map(({ runNo }) => runNo)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]);
  expect(journal.at(-1)?.outcome).toBe("cancelled");
  expect(
    await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000), kind: "numbered" }),
  ).toBe(1);
});
