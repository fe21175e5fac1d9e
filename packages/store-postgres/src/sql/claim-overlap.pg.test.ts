import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "../testing/store-fixture.ts";
import { until } from "../testing/until.ts";

const { url, directUrl, pool } = await testDatabase();
const store = new PostgresStore({ pool });
const slowPool = new pg.Pool({ connectionString: url, application_name: "slow" });
const slowStore = new PostgresStore({ pool: slowPool });
const gate = new pg.Client({ connectionString: directUrl });

beforeAll(async () => {
  await gate.connect();
  // For the slow one the clock stands behind a gate: its claims read it when their snapshot has been taken.
  await pool.query(`create or replace function venturi_clock() returns timestamptz language plpgsql volatile as $$ begin
    if current_setting('application_name') = 'slow' then perform pg_advisory_lock_shared(77), pg_advisory_unlock_shared(77); end if;
    return statement_timestamp(); end $$`);
});
afterAll(async () => {
  await slowPool.end();
  await gate.end();
  await expectInvariants(pool);
});

it.each([
  ["a first claim", false, false],
  ["a claim after one that took all", true, false],
  ["a claim for a named job", true, true],
])(
  "a job that was run and given back while %s was looking begins its next run after that one has ended",
  async (_, isAll, isNamed) => {
    const [fast, slow] = [await startWorker(store), await startWorker(slowStore)];
    if (isAll) await slowStore.claim(claimRequest(slow, ["k"]));
    const [id] = await enqueue(store, job("k"));
    await gate.query("select pg_advisory_lock(77)");
    const hint = isNamed ? { hint: id as JobId } : {};
    const claiming = slowStore.claim(claimRequest(slow, ["k"], hint));
    await until(async () => {
      const { rows } = await gate.query(
        `select from pg_locks where locktype = 'advisory' and objid = 77 and not granted
          and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows.length === 1;
    });
    const first = await store.claim(claimRequest(fast, ["k"]));
    await store.settle({
      worker: fast,
      settlements: first.jobs.map((claimed) => settlement(claimed, "paused")),
    });
    await gate.query("select pg_advisory_unlock(77)");

    const { jobs } = await claiming;
    expect(jobs.map((claimed) => [claimed.id, claimed.runCount])).toEqual([[id, 2]]);
    await store.settle({
      worker: slow,
      settlements: jobs.map((claimed) => settlement(claimed)),
    });
    const { rows } = await pool.query(
      `select started_at >= lag(recorded_at) over (order by entry_no) as after
      from venturi_journal where venturi_ulid(job_id) = $1 order by entry_no`,
      [id],
    );
    expect(rows).toEqual([{ after: null }, { after: true }]);
  },
);
