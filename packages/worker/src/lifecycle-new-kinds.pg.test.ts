import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const database = await testDatabase();
const anything = v.object({ n: v.number() });
const taskOf = (kind: string) => defineTask({ kind, payload: anything });

let counter = 0;
/** The transaction that has enqueued the first job ever of the new kind, and stays open. */
let holder: pg.PoolClient;
let store: PostgresStore;
let queue: Queue<unknown>;
let New: ReturnType<typeof taskOf>;
let Known: ReturnType<typeof taskOf>;

beforeEach(async () => {
  counter += 1;
  [New, Known] = [taskOf(`new ${counter}`), taskOf(`known ${counter}`)];
  store = new PostgresStore({ pool: database.pool });
  queue = new Queue(store);
  await queue.enqueue(Known({ n: 0 }));
  holder = await database.pool.connect();
  await holder.query("begin");
  await queue.within(holder).enqueue(New({ n: 1 }));
});

afterEach(async () => {
  await holder.query("rollback");
  holder.release();
  await expectInvariants(database.pool);
});

/** A worker that looks only when it is woken, and what it has run. */
function workerOf(tasks: readonly ReturnType<typeof taskOf>[]) {
  const { logger, records } = recordingLogger();
  const ran: number[] = [];
  const worker = new Worker(store, { logger, pollMax: "1h", shutdownTimeout: "1h" });
  for (const task of tasks) worker.register(task, ({ n }) => void ran.push(n));
  const isStarted = () => records.some(({ message }) => message === "worker started");
  const warnings = () => records.filter(({ level }) => level === "warn");
  return { worker, ran, isStarted, warnings };
}

describe("a kind whose first job is in a transaction that is still open", () => {
  test.each(["commit", "rollback"])(
    "does not keep a worker from running its others, and is run after a %s and another enqueue",
    async (end) => {
      const { worker, ran, isStarted, warnings } = workerOf([New, Known]);
      await running(worker, async () => {
        await until(() => ran.length === 1);
        expect(isStarted()).toBe(true);
        expect(warnings()).toMatchObject([{ fields: { kinds: [New.kind] } }]);
        await queue.enqueue(Known({ n: 2 }));
        await until(() => ran.length === 2);
        await holder.query(end);
        if (end === "commit") await until(() => ran.length === 3);
        await queue.enqueue(New({ n: 3 }));
        await until(() => ran.includes(3));
      });
      expect(ran).toEqual(end === "commit" ? [0, 2, 1, 3] : [0, 2, 3]);
      expect(warnings()).toHaveLength(1);
    },
  );

  test("does not keep a worker of that kind alone from starting, stopping, or running it at last", async () => {
    const { worker, ran, isStarted } = workerOf([New]);
    await running(worker, () => until(isStarted));
    expect(ran).toEqual([]);
    const next = workerOf([New]);
    await running(next.worker, async () => {
      await until(next.isStarted);
      await holder.query("commit");
      await until(() => next.ran.length === 1);
    });
  });

  test("does not keep a worker from stopping while it starts", async () => {
    const { worker, ran } = workerOf([New, Known]);
    const abort = new AbortController();
    const running = worker.run({ signal: abort.signal });
    abort.abort();
    await running;
    expect(ran).toEqual([]);
  });

  test("does not keep runOnce from running what there is", async () => {
    const { worker, ran } = workerOf([New, Known]);
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await workerOf([New]).worker.runOnce()).toMatchObject({ completed: 0 });
    expect(ran).toEqual([0]);
  });
});
