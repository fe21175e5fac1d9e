import type { ClaimedJob, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { whileLocked } from "../testing/locks.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import {
  claimNew,
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";
import { countWakeUps } from "../testing/wake-ups.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const wakeUps = await countWakeUps(pool);
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store);
});
afterEach(() => expectInvariants(pool));
afterAll(() => wakeUps.close());

type Claim = Pick<ClaimedJob, "id" | "runCount"> & Partial<ClaimedJob>;

const handBack = async (claims: readonly Claim[], by = worker) => {
  const request = claims.map(({ id, runCount, leaseExpiresAt }) => ({
    jobId: id,
    runCount,
    leaseExpiresAt,
  }));
  return (await store.handBack({ worker: by, claims: request })).verdicts;
};

async function rows() {
  const { rows: found } = await pool.query("select * from venturi_queue order by seq");
  return found;
}

describe("a claim that is handed back", () => {
  it("is as if it had never been made: pending, in its place, and nothing in the journal", async () => {
    await enqueue(store, job("a", { priority: "high", leaseMs: 5_000 }), job("a"));
    const before = await rows();
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    expect(await handBack(jobs)).toEqual(["applied", "applied"]);
    expect(await rows()).toEqual(before);
    expect((await pool.query("select 1 from venturi_journal")).rows).toEqual([]);
  });

  it("is claimed next, as the run that it would have been", async () => {
    const first = await claimNew(store, worker, "a", 1);
    await enqueue(store, job("a"));
    await handBack(first);
    const other = await startWorker(store);
    const { jobs } = await store.claim(claimRequest(other, ["a"], { limit: 1 }));
    expect(jobs).toMatchObject([{ id: first[0].id, runCount: 1 }]);
  });

  it("keeps what earlier runs have left", async () => {
    const [first] = await claimNew(store, worker, "a", 1);
    const settlements = [settlement(first, "retried", { carry: "[1]", note: "x" })];
    await store.settle({ worker, settlements });
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    await handBack(jobs);
    const again = await store.claim(claimRequest(worker, ["a"]));
    expect(again.jobs).toMatchObject([{ runCount: 2, failureCount: 1, carry: "[1]" }]);
  });

  it("wakes workers, once", async () => {
    const jobs = await claimNew(store, worker, "a", 3);
    expect(await wakeUps.sentBy(() => handBack(jobs))).toBe(1);
    expect(await wakeUps.sentBy(() => handBack(jobs))).toBe(0);
  });
});

describe("handing back applies only while the run holds the claim", () => {
  it("not for another worker, another run, an unknown job", async () => {
    const jobs = await claimNew(store, worker, "a", 1);
    expect(await handBack(jobs, await startWorker(store))).toEqual(["lost"]);
    expect(await handBack(jobs.map(({ id }) => ({ id, runCount: 2 })))).toEqual(["lost"]);
    expect(await handBack([{ id: newId(), runCount: 1 }])).toEqual(["lost"]);
    expect(await rows()).toMatchObject([{ claimed_by: worker, run_count: 1 }]);
  });

  it("not after it was settled, nor a second time, nor in a later claim of the same number", async () => {
    const [one, two] = await claimNew(store, worker, "a", 2);
    await store.settle({ worker, settlements: [settlement(one)] });
    expect(await handBack([one, two])).toEqual(["lost", "applied"]);
    expect(await handBack([two])).toEqual(["lost"]);
    const other = await startWorker(store);
    await store.claim(claimRequest(other, ["a"]));
    expect(await handBack([two])).toEqual(["lost"]);
    expect(await rows()).toMatchObject([{ claimed_by: other, run_count: 1 }]);
  });

  it("not, when it comes late, for the worker's next claim, which has the same run count", async () => {
    await enqueue(store, job("a"), job("a", { leaseMs: 5_000 }));
    const claimAgain = async () => {
      await pool.query("select pg_sleep(0.01)");
      return (await store.claim(claimRequest(worker, ["a"]))).jobs;
    };
    const first = await claimAgain();
    expect(await handBack(first)).toEqual(["applied", "applied"]);
    const second = await claimAgain();
    expect(second.map(({ id, runCount }) => [id, runCount])).toEqual(
      first.map(({ id }) => [id, 1]),
    );
    // Lost at once, also where the row is locked: it will never be this claim's again.
    await whileLocked(pool, [second[0]?.id as string], async () => {
      expect(await handBack(first)).toEqual(["lost", "lost"]);
    });
    expect(await rows()).toMatchObject([{ claimed_by: worker }, { claimed_by: worker }]);
    expect(await handBack(second)).toEqual(["applied", "applied"]);
  });

  it("also for a claim that was found without its answer", async () => {
    await claimNew(store, worker, "a", 2);
    const holders = [{ worker, overdueOnly: false }];
    const { claims } = await store.findStale({ holders, orphans: false, limit: 10 });
    expect(await store.handBack({ worker, claims })).toEqual({ verdicts: ["applied", "applied"] });
  });

  it("a row that another transaction has locked is busy, and does not hold up the rest", async () => {
    const jobs = await claimNew(store, worker, "a", 3);
    const locked = jobs.slice(1, 2).map(({ id }) => id);
    await whileLocked(pool, locked, async () => {
      expect(await handBack(jobs)).toEqual(["applied", "busy", "applied"]);
    });
    expect(await handBack(jobs)).toEqual(["lost", "applied", "lost"]);
  });
});

it("a thousand claims are handed back by one statement, none of none", async () => {
  await addBacklog(pool, { kind: "a", count: 1_000 });
  const { jobs } = await store.claim(claimRequest(worker, ["a"], { limit: 1_000 }));
  const queries = await recorder.queriesOf(async () => {
    expect(new Set(await handBack(jobs))).toEqual(new Set(["applied"]));
  });
  expect(queries).toHaveLength(1);
  expect(await recorder.queriesOf(() => handBack([]))).toEqual([]);
});
