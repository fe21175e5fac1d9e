import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue } from "../testing/bare-sql.ts";
import { claimRequest, startWorker } from "../testing/store-fixture.ts";
import { until } from "../testing/until.ts";

const { directUrl, pool } = await testDatabase();
const store = new PostgresStore({ pool });
const gate = new pg.Client({ connectionString: directUrl });

beforeAll(async () => {
  await gate.connect();
  // A clock that stands behind a gate: a claim reads it when its snapshot has been taken and no row locked yet.
  await pool.query(`create or replace function venturi_clock() returns timestamptz language plpgsql volatile as $$ begin
    perform pg_advisory_lock_shared(77), pg_advisory_unlock_shared(77); return statement_timestamp(); end $$`);
});
afterAll(async () => {
  await gate.end();
  await expectInvariants(pool);
});

it.each([
  ["a first claim", false, false],
  ["a claim after one that took all", true, false],
  ["a claim for a named job", true, true],
])(
  "a job that was merged into while %s was looking runs with what the merge left",
  async (_, isAll, isNamed) => {
    const keyed = (payload: unknown, headers: object) => ({
      kind: "k",
      dedup_key: "1",
      payload,
      headers,
    });
    for (let round = 0; round < 2; round += 1) {
      const worker = await startWorker(store, { kinds: ["k"] });
      // What the store asks once has been asked.
      await store.claim(claimRequest(await startWorker(store), ["absent", "k"]));
      if (isAll) await store.claim(claimRequest(worker, ["absent"]));
      const [named] = await bareEnqueue(pool, [
        keyed("old", { from: "old" }),
        { kind: "k", payload: "beside" },
      ]);
      const merger = await pool.connect();
      await merger.query("begin");
      await bareEnqueue(merger, [keyed("new", { from: "new" })]);
      await gate.query("select pg_advisory_lock(77)");
      const hint = isNamed ? { hint: named?.id as JobId } : {};
      const claiming = store.claim(claimRequest(worker, ["k"], hint));
      const waits =
        "select from pg_locks where locktype = 'advisory' and objid = 77 and not granted and database = (select oid from pg_database where datname = current_database())";
      await until(async () => (await gate.query(waits)).rows.length === 1);
      await merger.query("commit");
      merger.release();
      await gate.query("select pg_advisory_unlock(77)");
      const { jobs } = await claiming;
      expect(jobs.map(({ payload, headers }) => [payload, { ...headers }])).toEqual([
        ['"new"', { from: "new" }],
        ...(isNamed ? [] : [['"beside"', {}]]),
      ]);
      await removeJobs(pool);
    }
  },
);
