import type { ClaimedJob, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const clock = await stopSqlClock(pool);
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store);
});
afterEach(() => expectInvariants(pool));

async function claim(): Promise<ClaimedJob> {
  const { jobs } = await store.claim(claimRequest(worker, ["a"]));
  return jobs[0] as ClaimedJob;
}

async function recover(run: ClaimedJob, outcome: "stale-recovered" | "dead"): Promise<void> {
  await clock.advance(run.leaseMs);
  const { id: jobId, runCount } = run;
  const recoveries = [{ jobId, runCount, holder: worker, outcome, delayMs: 0, note: "lost" }];
  expect(await store.recover({ recoveries })).toEqual({ applied: [true] });
}

async function settle(run: ClaimedJob, outcome: "paused" | "retried" | "released" | "dead") {
  const settlements = [settlement(run, outcome)];
  expect(await store.settle({ worker, settlements })).toEqual({ verdicts: ["applied"] });
}

describe("the row of a job that is pending again says nothing of the claim that has ended", () => {
  const ways: Readonly<Record<string, (run: ClaimedJob) => Promise<void>>> = {
    paused: (run) => settle(run, "paused"),
    retried: (run) => settle(run, "retried"),
    released: (run) => settle(run, "released"),
    recovered: (run) => recover(run, "stale-recovered"),
    "handed back": async ({ id: jobId, runCount }) => {
      const claims = [{ jobId, runCount }];
      expect(await store.handBack({ worker, claims })).toEqual({ verdicts: ["applied"] });
    },
  };

  it.each(Object.keys(ways))("%s", async (way) => {
    await enqueue(store, job("a"));
    const ofTheClaim = "claimed_by, claimed_at, lease_expires_at, backstop";
    const row = async () => (await pool.query(`select ${ofTheClaim} from venturi_queue`)).rows[0];
    const run = await claim();
    expect(Object.values(await row())).not.toContain(null);
    await ways[way]?.(run);
    expect(new Set(Object.values(await row()))).toEqual(new Set([null]));
  });
});

describe("a job that dies moves its whole row to the dead, with one failure more", () => {
  it.each([
    ["settled", (run: ClaimedJob) => settle(run, "dead")],
    ["recovered", (run: ClaimedJob) => recover(run, "dead")],
  ] as const)("%s", async (_, die) => {
    await enqueue(store, job("b"), job("a", { dedupKey: "k" }));
    const { id: jobId, runCount } = await claim();
    const paused = settlement({ id: jobId, runCount }, "paused", { carry: '{"page": 2}' });
    await store.settle({ worker, settlements: [paused] });
    // A merge that counts as a version, and sets what a job may have of its own.
    await enqueue(store, job("a", { dedupKey: "k", priority: "low", leaseMs: 5_000 }));
    await pool.query(
      `update venturi_queue set carry = '{"page": 3}', expires_at = '2030-01-01' where dedup_key is not null`,
    );
    const run = await claim();
    const live = await pool.query(
      "select to_jsonb(q) as row from venturi_queue q where claimed_by is not null",
    );
    await die(run);
    const dead = await pool.query("select to_jsonb(d) as row from venturi_dead d");
    const { finished_at: _at, ...row } = dead.rows[0].row;
    const { failure_count, ...before } = live.rows[0].row;
    expect(before).toMatchObject({ version: 1, priority: 2, lease_ms: 5_000 });
    expect({ ...before, ...row }).toEqual({ ...before, failure_count: failure_count + 1 });
  });
});

it("a dead job that is put back has all that it had, but as if it arrived now and had never failed", async () => {
  await enqueue(store, job("a", { dedupKey: "k", priority: "low", leaseMs: 5_000 }));
  const first = await claim();
  const { id: jobId, runCount } = first;
  const paused = settlement({ id: jobId, runCount }, "paused", { carry: '{"page": 2}' });
  await store.settle({ worker, settlements: [paused] });
  await settle(await claim(), "dead");
  await pool.query("update venturi_dead set expires_at = '2030-01-01', version = 7");
  const before = (await pool.query("select to_jsonb(d) as row from venturi_dead d")).rows[0].row;
  await enqueue(store, job("b"));
  await clock.advance(5_000);
  expect(await store.retry({ id: jobId })).toEqual({ applied: true });
  const live = await pool.query(
    "select to_jsonb(q) as row, visible_at from venturi_queue q where dedup_key is not null",
  );
  const { row, visible_at } = live.rows[0];
  const { finished_at: _at, seq, visible_at: _dueAt, failure_count, version, ...kept } = before;
  expect([failure_count, version]).toEqual([1, 7]);
  expect(row).toMatchObject({ ...kept, failure_count: 0, version: 8, claimed_by: null });
  expect(row.seq).toBeGreaterThan(seq + 1);
  expect(visible_at).toEqual(new Date(await clock.now()));
  const entry = "select failure_count from venturi_journal order by entry_no desc limit 1";
  expect((await pool.query(entry)).rows).toEqual([{ failure_count: 0 }]);
});
