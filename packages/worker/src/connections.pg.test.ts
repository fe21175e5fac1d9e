import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import {
  expectInvariants,
  expectNoWarnings,
  invariantViolations,
  testDatabase,
} from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const database = await testDatabase();
const payload = v.object({ n: v.number() });

expectNoWarnings();

test("a process that produces and works has no more connections than its pool and one to listen, none of them idle in a transaction", async () => {
  const maxConnections = 3;
  const checker = new pg.Client({ connectionString: database.url });
  await checker.connect();
  const store = await PostgresStore.connect({ connectionString: database.url, maxConnections });
  const queue = new Queue(store);
  const Task = defineTask({ kind: "many", payload });
  const expected = 600;
  let done = 0;
  let looks = 0;
  const worker = () =>
    new Worker(store, { concurrency: 20, workerTimeout: 300 }).register(Task, async ({ n }) => {
      if (n < expected / 2) await queue.enqueue(Task({ n: n + expected / 2 }));
      done += 1;
    });
  const listening = async () => {
    const { rows } = await checker.query(
      "select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen %'",
    );
    return rows.length;
  };
  await running(worker(), async () => {
    await until(async () => (await listening()) === 1);
    const many = Array.from({ length: expected / 2 }, (_, n) => Task({ n }));
    await Promise.all(many.map((job) => queue.enqueue(job)));
    await until(async () => {
      await expectInvariants(checker, { maxConnections: maxConnections + 1 });
      looks += 1;
      return done === expected;
    });
  });
  expect(looks).toBeGreaterThan(1);
  // The server forgets a connection a moment after it was closed.
  const isAtMost = async (most: number) =>
    (await invariantViolations(checker, { maxConnections: most })).length === 0;
  await until(() => isAtMost(maxConnections), { withinMs: 2_000 });
  await store.close();
  await until(() => isAtMost(0), { withinMs: 2_000 });
  await checker.end();
});
