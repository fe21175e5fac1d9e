import { defineTask, Merge } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const Now = defineTask({
  kind: "now",
  payload: v.object({ n: v.number() }),
  dedupKey: () => "key",
  merge: (incoming, existing) =>
    Merge.with({ n: incoming.n + existing.payload.n }, undefined, { visibleAt: new Date(0) }),
});

test("a merge function that makes a job due wakes an idle worker that may sleep for a minute", async () => {
  let looks = 0;
  const counting = wrapStore(store, (plain) => ({
    claim: async (request) => {
      const result = await plain.claim(request);
      looks += 1;
      return result;
    },
  }));
  let startedAt = 0;
  const ran: number[] = [];
  const worker = new Worker(counting, { pollMax: "60s" }).register(Now, ({ n }) => {
    startedAt = performance.now();
    ran.push(n);
  });
  const id = await queue.enqueue(Now({ n: 1 }), { delay: "10h" });
  await running(worker, async () => {
    // It has looked, found nothing, looked again before it sleeps.
    await until(() => looks > 1);
    const mergedAt = performance.now();
    expect(await queue.enqueue(Now({ n: 2 }))).toBe(id);
    await until(async () => (await queue.job(id))?.status === "completed");
    expect(startedAt - mergedAt).toBeLessThan(1_000);
  });
  expect(ran).toEqual([3]);
});

test("a job that was put back by hand wakes it too, runs again and completes", async () => {
  const Failing = defineTask({ kind: "failing", payload: v.number(), backstop: 1 });
  let fails = true;
  let startedAt = 0;
  const worker = new Worker(store, { pollMax: "60s" }).register(Failing, () => {
    startedAt = performance.now();
    if (fails) throw new Error("not yet");
  });
  const id = await queue.enqueue(Failing(1));
  await running(worker, async () => {
    await until(async () => (await queue.job(id))?.status === "dead");
    fails = false;
    const retriedAt = performance.now();
    expect(await queue.retry(id)).toBe(true);
    await until(async () => (await queue.job(id))?.status === "completed");
    expect(startedAt - retriedAt).toBeLessThan(1_000);
  });
  expect(await queue.job(id)).toMatchObject({ failureCount: 0, runCount: 2 });
  const outcomes = (await queue.journal(id)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["dead", "requeued", "completed"]);
});
