import { createJobIds, type JobId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, expect } from "vitest";
import { Anything } from "../tasks.ts";

export const newId = createJobIds({ now: Date.now, random: Math.random });

/** A pool may hand out a connection that it does not know to be lost: calls with an id can be repeated. */
export async function untilStored(enqueue: () => Promise<JobId>): Promise<JobId> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await enqueue();
    } catch (error) {
      const { isRetryable = true } = error as { readonly isRetryable?: boolean };
      if (!isRetryable || tries === 5) throw error;
    }
  }
}

export async function failureOf(promise: Promise<unknown>): Promise<Record<string, unknown>> {
  return promise.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error as Record<string, unknown>,
  );
}

/** A database with a table beside the jobs, and what the tests of drivers look at in it. */
export async function contractFixture() {
  expectNoWarnings();
  const { pool, url } = await testDatabase();
  await pool.query("create table orders (id integer primary key)");
  const store = new PostgresStore({ pool });
  const operator = new Queue(store);
  afterEach(() => pool.query("delete from orders"));
  afterAll(() => expectInvariants(pool));
  return {
    pool,
    url,
    store,
    operator,
    async orders(): Promise<readonly number[]> {
      const { rows } = await pool.query<{ id: number }>("select id from orders order by id");
      return rows.map(({ id }) => id);
    },
    status: async (id: JobId) => (await operator.job(id))?.status,
    payload: async (id: JobId) => (await operator.job(id))?.payload,
    /** So that a test runs its own jobs alone. */
    async runEverything(): Promise<void> {
      await new Worker(store).register(Anything, () => undefined).runOnce();
    },
  };
}
