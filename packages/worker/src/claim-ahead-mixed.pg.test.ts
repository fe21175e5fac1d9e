import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const Short = defineTask({ kind: "short", payload });
const Long = defineTask({ kind: "long", payload });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

test("what was claimed ahead behind long jobs is handed back once, then only free slots are claimed for", async () => {
  const enqueueShort = (count: number) =>
    queue.enqueueMany(Array.from({ length: count }, (_, n) => Short({ n })));
  const claimed = async () => (await queue.jobs({ status: "claimed", limit: 1_000 })).jobs.length;
  const brought: number[] = [];
  const watched = wrapStore(store, (plain) => ({
    claim: async (request) => {
      const result = await plain.claim(request);
      brought.push(result.jobs.length);
      return result;
    },
  }));
  const ends = [deferred(), deferred()];
  let started = 0;
  let ran = 0;
  const worker = new Worker(watched, { concurrency: 2 })
    .register(Short, () => {
      ran += 1;
    })
    .register(Long, ({ n }) => {
      started += 1;
      return ends[n]?.promise;
    });
  await enqueueShort(500);
  await queue.enqueueMany([Long({ n: 0 }), Long({ n: 1 })]);
  await enqueueShort(500);
  await running(worker, async () => {
    await until(() => started === 2);
    // After a second; the second of them still holds its slot when the first has ended.
    await until(async () => (await claimed()) === 2);
    expect(Math.max(...brought)).toBeGreaterThan(20);
    brought.length = 0;
    ends[0]?.resolve();
    await until(() => ran === 1_000);
    expect(Math.max(...brought)).toBe(1);
    ends[1]?.resolve();
    await until(async () => (await claimed()) === 0);
  });
});
