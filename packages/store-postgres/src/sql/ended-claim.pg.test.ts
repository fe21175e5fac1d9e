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
