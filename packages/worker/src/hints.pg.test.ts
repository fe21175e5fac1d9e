import { defineTask } from "@venturi/core";
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
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

test("an idle worker asks for the very job that a notification named", async () => {
  const Task = defineTask({ kind: "named", payload });
  const hints: unknown[] = [];
  const recording = wrapStore(store, (plain) => ({
    claim: (request) => {
      if (request.hint !== undefined) hints.push(request.hint);
      return plain.claim(request);
    },
  }));
  const ran: number[] = [];
  const options = { pollMax: "60s", concurrency: 4 } as const;
  const worker = new Worker(recording, options).register(Task, ({ n }) => {
    ran.push(n);
  });
  // The first of a kind is like no other: it makes the kind known.
  await queue.enqueue(Task({ n: 0 }));
  await running(worker, async () => {
    for (let n = 1; n <= 20; n += 1) {
      const id = await queue.enqueue(Task({ n }));
      await until(() => ran.includes(n), { withinMs: 1_000 });
      if (n > 10) await until(() => hints.includes(id), { withinMs: 1_000 });
    }
  });
  expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: 21 }, (_, n) => n));
});

test("a job of which no notification came starts within a second or so while others come with one", async () => {
  const Task = defineTask({ kind: "unheard", payload });
  const ran: number[] = [];
  const options = { pollMax: "60s", concurrency: 4 } as const;
  const worker = new Worker(store, options).register(Task, ({ n }) => {
    ran.push(n);
  });
  await queue.enqueue(Task({ n: 0 }));
  await running(worker, async () => {
    await until(() => ran.includes(0));
    for (let n = 1; n <= 5; n += 1) {
      await queue.enqueue(Task({ n }));
      await until(() => ran.includes(n));
    }
    await store.configure({ notify: false });
    await queue.enqueue(Task({ n: -1 }));
    await store.configure({ notify: true });
    let n = 5;
    const since = performance.now();
    while (!ran.includes(-1)) {
      n += 1;
      await queue.enqueue(Task({ n }));
      await until(() => ran.includes(n));
      expect(performance.now() - since).toBeLessThan(3_000);
    }
  });
});
