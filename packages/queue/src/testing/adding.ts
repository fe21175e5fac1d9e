import { defineTask, isVenturiError, Merge } from "@venturi/core";
import type pg from "pg";
import * as v from "valibot";
import type { Queue } from "../queue.ts";

/** A counter that producers add to: what is pending holds the sum. */
export const Add = defineTask({
  kind: "add",
  payload: v.object({ key: v.string(), n: v.number() }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
  dedupKey: ({ key }) => key,
  merge: ({ key, n }, { payload }) => Merge.with({ key, n: payload.n + n }),
});

/** Adds in a transaction of its own, which is begun again a little later when a conflict has ended it. */
export async function addWithin(
  pool: pg.Pool,
  queue: Queue,
  job: ReturnType<typeof Add>,
  end: "commit" | "rollback",
): Promise<void> {
  for (let delayMs = 5; ; delayMs = Math.min(delayMs * 2, 1_000)) {
    if (await tryWithin(pool, queue, job, end)) return;
    await new Promise((resolve) => setTimeout(resolve, delayMs * Math.random()));
  }
}

async function tryWithin(
  pool: pg.Pool,
  queue: Queue,
  job: ReturnType<typeof Add>,
  end: "commit" | "rollback",
): Promise<boolean> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await queue.within(client).enqueue(job);
    await client.query(end);
    return true;
  } catch (error) {
    await client.query("rollback");
    if (isVenturiError(error) && error.isRetryable) return false;
    throw error;
  } finally {
    client.release();
  }
}
