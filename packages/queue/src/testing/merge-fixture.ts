import { defineTask, type JobId, type MergeFunction } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, beforeEach } from "vitest";
import { Queue } from "../queue.ts";
import { Add } from "./adding.ts";
import { claimer } from "./claiming.ts";

export type Payload = { readonly key: string; readonly n: number };
export type Carry = { readonly page: number };

/** A task of the kind of `Add` that merges in another way. */
export function taskThat(merge: MergeFunction<Payload, Carry>) {
  return defineTask({
    kind: "add",
    payload: v.object({ key: v.string(), n: v.number() }),
    carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
    dedupKey: ({ key }) => key,
    merge,
  });
}

/** An addition to the counter of a key. */
export const add = (n: number, key = "a") => Add({ key, n });

/** A database without jobs before every test, and what tests of merges look at in it. */
export async function mergeFixture() {
  const { url, pool } = await testDatabase();
  const store = new PostgresStore({ pool });
  const operator = new Queue(store);
  beforeEach(() =>
    pool.query("truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal"),
  );
  afterEach(() => expectInvariants(pool));
  return {
    url,
    pool,
    operator,
    claim: await claimer(store),
    /** The outcomes in the journal of a job. */
    outcomes: async (id: JobId) => (await operator.journal(id)).map(({ outcome }) => outcome),
    /** What the counters stand at. */
    payloads: async () =>
      (await operator.jobs({ kind: "add" })).jobs.map(({ payload }) => (payload as Payload).n),
  };
}
