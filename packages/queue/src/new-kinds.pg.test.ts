import { defineTask } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, openSession, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nextJobId } from "./job-ids.ts";
import { Queue } from "./queue.ts";
import { Count, Replaced } from "./testing/tasks.ts";

const { pool } = await testDatabase();
const operator = new Queue(new PostgresStore({ pool }));

const payload = v.object({ n: v.number() });
let counter = 0;
let New: ReturnType<typeof taskOf>;
/** Somebody's transaction, which stays open. */
let holder: pg.PoolClient;

const taskOf = (kind: string) => defineTask({ kind, payload });

beforeEach(async () => {
  counter += 1;
  New = taskOf(`new ${counter}`);
  await operator.enqueueMany([Count({ n: 0 }), Replaced({ key: "a", n: 0 })]);
  holder = await pool.connect();
  await holder.query("begin");
});

afterEach(async () => {
  await holder.query("rollback");
  holder.release();
  await expectInvariants(pool);
});

async function somebodyWaits(): Promise<void> {
  const waiting = `select from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()`;
  while ((await pool.query(waiting)).rows.length === 0);
}

const makers = [
  ["a pool", () => new Queue(pool)],
  ["a store", () => new Queue(new PostgresStore({ pool }))],
] as const;

describe.each(makers)("over %s", (_, makeQueue) => {
  it.each(["commit", "rollback"])(
    "jobs of other kinds do not wait for a kind's first job; those of its own do, until the %s",
    async (end) => {
      const queue = makeQueue();
      await queue.within(holder).enqueue(New({ n: 1 }));
      const waiting = queue.enqueue(New({ n: 2 }));
      await somebodyWaits();
      // The queue has stored none of these before either.
      await queue.enqueue(Count({ n: 1 }));
      await queue.enqueue(taskOf(`another ${counter}`)({ n: 1 }));
      await queue.enqueue(Replaced({ key: `key ${counter}`, n: 1 }));
      await holder.query(end);
      expect(await operator.job(await waiting)).toMatchObject({ payload: { n: 2 } });
    },
  );

  it("jobs do not wait for an id of somebody's own, only its repeats do", async () => {
    const queue = makeQueue();
    await queue.enqueue(Count({ n: 1 }));
    const id = nextJobId();
    await queue.within(holder).enqueue(Count({ n: 2 }), { id });
    const waiting = queue.enqueue(Count({ n: 2 }), { id });
    await somebodyWaits();
    await queue.enqueue(Count({ n: 3 }));
    await queue.enqueue(taskOf(`another ${counter}`)({ n: 1 }));
    await holder.query("commit");
    expect(await waiting).toBe(id);
  });
});

it("a call waits no longer than its session may, and is told for what", async () => {
  const session = await openSession(pool);
  await session.query("set lock_timeout = '100ms'");
  const queue = new Queue(session);
  await queue.within(holder).enqueue(New({ n: 1 }));
  await expect(queue.enqueue(New({ n: 2 }))).rejects.toMatchObject({
    code: "database",
    sqlState: "55P03",
    isRetryable: true,
    message: expect.stringContaining(`the first job of a kind (${New.kind})`),
  });
  const id = nextJobId();
  await queue.within(holder).enqueue(Count({ n: 1 }), { id });
  await expect(queue.enqueue(Count({ n: 1 }), { id })).rejects.toMatchObject({
    sqlState: "55P03",
    message: expect.stringContaining("the same id"),
  });
  await session.end();
});
