import type { ClaimedJob, JobId, Recovery, StaleClaim, WorkerId } from "@venturi/core";
import { Backoff, decideRecovery } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { whileLocked } from "../testing/locks.ts";
import { recordingPool, verbOf } from "../testing/recording-pool.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import {
  claimKind,
  claimNew,
  claimRequest,
  enqueue,
  job,
  registration,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";
import { countWakeUps } from "../testing/wake-ups.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const clock = await stopSqlClock(pool);
const wakeUps = await countWakeUps(pool);
const leaseMs = 900_000;
const patient = { workerTimeoutMs: 60_000, shortestLeaseMs: leaseMs };
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  await pool.query("delete from venturi_workers");
  worker = await startWorker(store, { name: "w", ...patient });
});
afterEach(() => expectInvariants(pool));
afterAll(() => wakeUps.close());

const beat = () => store.beat({ worker, ...registration, ...patient, name: "w" });

/** The recovery of a claim, as whoever finds it decides. */
function recovery(
  { id, runCount }: { readonly id: JobId; readonly runCount: number },
  changes: Partial<Recovery> = {},
): Recovery {
  const rest = { outcome: "stale-recovered", delayMs: 0, note: "lost" } as const;
  return { jobId: id, runCount, holder: worker, ...rest, ...changes };
}

const recover = async (...recoveries: readonly Recovery[]) =>
  (await store.recover({ recoveries })).applied;
const jobOf = async (id: JobId) => (await store.findJob({ id })).job;
const journalOf = async (jobId: JobId) => (await store.readJournal({ jobId })).entries;

describe("a recovered claim", () => {
  it("is a failed run: pending again after its backoff, in the journal as recovered", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    await clock.advance(leaseMs);
    expect(await recover(recovery(each, { delayMs: 877, note: "its lease ended" }))).toEqual([
      true,
    ]);
    const now = await clock.now();
    expect(await jobOf(each.id)).toMatchObject({
      status: "pending",
      runCount: 1,
      failureCount: 1,
      visibleAt: new Date(now + 877),
      claimedBy: null,
      leaseExpiresAt: null,
    });
    expect(await journalOf(each.id)).toMatchObject([
      {
        outcome: "stale-recovered",
        runNo: 1,
        note: "its lease ended",
        worker: "w",
        startedAt: new Date(now - leaseMs),
        recordedAt: new Date(now),
      },
    ]);
  });

  it("is recovered once, then runs again with the carry as it was stored", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    const settlements = [settlement(each, "paused", { carry: "[2]" })];
    await store.settle({ worker, settlements });
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    await clock.advance(leaseMs);
    const stale = jobs.map((again) => recovery(again));
    expect(await recover(...stale)).toEqual([true]);
    expect(await recover(...stale)).toEqual([false]);
    const again = await store.claim(claimRequest(await startWorker(store), ["a"]));
    expect(again.jobs).toMatchObject([{ runCount: 3, failureCount: 1, carry: "[2]" }]);
  });

  it("without a delay keeps its place in the order", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    const [later] = await enqueue(store, job("a"));
    await clock.advance(leaseMs);
    await recover(recovery(each));
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    expect(jobs.map(({ id }) => id)).toEqual([each.id, later]);
  });

  it("at the backstop that the claim carried is among the dead, all of it, and says why", async () => {
    await enqueue(store, job("a", { dedupKey: "k", priority: "high" }));
    const kinds = [claimKind("a", { backstop: 2 })];
    for (const outcome of ["stale-recovered", "dead"]) {
      await store.claim(claimRequest(worker, kinds));
      await clock.advance(leaseMs);
      const holders = [{ worker, overdueOnly: true }];
      const { claims } = await store.findStale({ holders, orphans: false, limit: 10 });
      const decided = claims.map((claim) => decideRecovery(claim, new Backoff(), 0.5));
      expect(decided).toMatchObject([{ outcome }]);
      expect(await recover(...decided)).toEqual([true]);
    }
    const { rows } = await pool.query(
      `select run_count, failure_count, priority, dedup_key, finished_at from venturi_dead`,
    );
    const finished_at = new Date(await clock.now());
    expect(rows).toEqual([
      { run_count: 2, failure_count: 2, priority: 0, dedup_key: "k", finished_at },
    ]);
    const journal = await pool.query("select outcome, note from venturi_journal order by entry_no");
    expect(journal.rows[1]).toEqual({
      outcome: "d",
      note: "run 2 was lost: its lease ended before it settled; failure 2 reaches the backstop of 2",
    });
  });
});

describe("a claim is recovered only while it is stale", () => {
  it("not before its lease has passed, while its holder lives", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    for (let ms = 0; ms < leaseMs - 1; ms += 59_999) {
      await beat();
      expect(await recover(recovery(each))).toEqual([false]);
      await clock.advance(Math.min(59_999, leaseMs - 1 - ms));
    }
    await beat();
    await clock.advance(1);
    expect(await recover(recovery(each))).toEqual([true]);
  });

  it("and before it, once its holder has been silent for its own timeout", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    await clock.advance(59_999);
    expect(await recover(recovery(each))).toEqual([false]);
    await clock.advance(1);
    expect(await recover(recovery(each))).toEqual([true]);
  });

  it("or once its holder has no row", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    await pool.query("delete from venturi_workers");
    expect(await recover(recovery(each))).toEqual([true]);
  });

  it("not after a beat that came in between", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    await clock.advance(60_000);
    await beat();
    expect(await recover(recovery(each))).toEqual([false]);
  });

  it("not after it was settled, whatever an older look had said", async () => {
    const [one, two] = await claimNew(store, worker, "a", 2);
    await clock.advance(leaseMs);
    const holders = [{ worker, overdueOnly: true }];
    const { claims } = await store.findStale({ holders, orphans: false, limit: 10 });
    await store.settle({
      worker,
      settlements: [settlement(one), settlement(two, "paused", { delayMs: 5 })],
    });
    const decided = claims.map((claim) => decideRecovery(claim, new Backoff(), 0.5));
    expect(await recover(...decided)).toEqual([false, false]);
    expect(await jobOf(one.id)).toMatchObject({ status: "completed", failureCount: 0 });
    expect(await journalOf(two.id)).toMatchObject([{ outcome: "paused" }]);
  });

  it("not in an earlier run than the one that is stale", async () => {
    const [first] = await claimNew(store, worker, "a", 1);
    await clock.advance(leaseMs);
    expect(await recover(recovery(first))).toEqual([true]);
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    await clock.advance(leaseMs);
    expect(await recover(recovery(first))).toEqual([false]);
    expect(await recover(...jobs.map((again) => recovery(again)))).toEqual([true]);
    expect((await jobOf(first.id))?.failureCount).toBe(2);
  });

  it("not from another holder than the one that was found", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    await clock.advance(leaseMs);
    expect(await recover(recovery(each, { holder: worker + 1 }))).toEqual([false]);
  });

  it("passing over what another transaction has locked", async () => {
    const [one, two] = await claimNew(store, worker, "a", 2);
    await clock.advance(leaseMs);
    await whileLocked(pool, [one.id], async () => {
      expect(await recover(recovery(one), recovery(two))).toEqual([false, true]);
    });
    expect(await recover(recovery(one))).toEqual([true]);
  });
});

describe("stale claims are found", () => {
  const find = async (request: Partial<Parameters<typeof store.findStale>[0]> = {}) =>
    (await store.findStale({ holders: [], orphans: false, limit: 100, ...request })).claims;
  const idsOf = (claims: readonly StaleClaim[]) => claims.map(({ jobId }) => jobId);

  it("with all that a recovery needs", async () => {
    const payload = '{"n": 1}';
    await enqueue(store, job("a", { payload }));
    const { jobs } = await store.claim(claimRequest(worker, [claimKind("a", { backstop: 7 })]));
    const stale = { jobId: jobs[0]?.id, kind: "a", payload, runCount: 1, failureCount: 0 };
    const { leaseExpiresAt } = jobs[0] as ClaimedJob;
    const expected = { ...stale, backstop: 7, holder: worker, leaseExpiresAt };
    const holders = [{ worker, overdueOnly: false }];
    expect(await find({ holders })).toEqual([{ ...expected, overdue: false }]);
    await clock.advance(leaseMs);
    expect(await find({ holders })).toEqual([{ ...expected, overdue: true }]);
  });

  it("only the overdue ones of who is suspect, all of who is dead, none of anybody else", async () => {
    const other = await startWorker(store);
    await enqueue(store, job("a", { leaseMs: 1_000 }));
    const [overdue] = (await store.claim(claimRequest(worker, ["a"]))).jobs;
    const [held] = await claimNew(store, worker, "a", 1);
    await claimNew(store, other, "a", 1);
    await clock.advance(1_000);
    const suspect = [{ worker, overdueOnly: true }];
    const dead = [{ worker, overdueOnly: false }];
    expect(idsOf(await find({ holders: suspect }))).toEqual([overdue?.id]);
    expect(idsOf(await find({ holders: dead }))).toEqual([overdue?.id, held.id]);
  });

  it("with the oldest lease first, no more than asked for", async () => {
    await enqueue(store, ...[3, 1, 2].map((n) => job("a", { leaseMs: n * 1_000 })));
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    const [third, first, second] = jobs.map(({ id }) => id);
    const holders = [{ worker, overdueOnly: false }];
    expect(idsOf(await find({ holders }))).toEqual([first, second, third]);
    expect(idsOf(await find({ holders, limit: 2 }))).toEqual([first, second]);
  });

  it("of workers without a row, and of those that ended and are long gone, as orphans", async () => {
    const [gone, ended, fresh, alive] = [
      await startWorker(store, patient),
      await startWorker(store, patient),
      await startWorker(store, patient),
      await startWorker(store, patient),
    ];
    const [one] = await claimNew(store, gone, "a", 1);
    const [two] = await claimNew(store, ended, "a", 1);
    await claimNew(store, alive, "a", 1);
    await pool.query("delete from venturi_workers where id = $1", [gone]);
    await store.stopWorker({ worker: ended });
    await clock.advance(60_000);
    await store.beat({ worker: fresh, ...registration, ...patient });
    await claimNew(store, fresh, "a", 1);
    await store.stopWorker({ worker: fresh });
    expect(new Set(idsOf(await find({ orphans: true })))).toEqual(new Set([one.id, two.id]));
    expect(await find()).toEqual([]);
  });

  it("of workers that ended, once their leases are over, however patient they were", async () => {
    const ended = await startWorker(store, {
      ...patient,
      workerTimeoutMs: Number.POSITIVE_INFINITY,
    });
    const [one] = await claimNew(store, ended, "a", 1);
    await store.stopWorker({ worker: ended });
    await clock.advance(899_000);
    expect(await find({ orphans: true })).toEqual([]);
    await clock.advance(1_000);
    expect(idsOf(await find({ orphans: true }))).toEqual([one.id]);
  });
});

describe("a claim of a worker that lives", () => {
  it("is an orphan once its lease has been over for a minute", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    const orphans = async (ms: number) => {
      await clock.advance(ms);
      await beat();
      const { claims } = await store.findStale({ holders: [], orphans: true, limit: 100 });
      return claims.map(({ jobId }) => jobId);
    };
    expect(await orphans(leaseMs + 59_999)).toEqual([]);
    expect(await orphans(1)).toEqual([each.id]);
  });
});

describe("a dead worker", () => {
  const look = () =>
    store.findStale({ holders: [{ worker, overdueOnly: false }], orphans: false, limit: 100 });

  it("is given up once all its claims are recovered, and looked for no more", async () => {
    const observer = await startWorker(store, { ...patient, workerTimeoutMs: 3.6e6 });
    const askAround = () => store.beat({ worker: observer, ...registration });
    const jobs = await claimNew(store, worker, "a", 2);
    await clock.advance(60_000);
    expect((await askAround()).silent).toHaveLength(1);
    expect((await look()).claims).toHaveLength(2);
    await recover(...jobs.map((each) => recovery(each)));
    expect((await look()).claims).toEqual([]);
    expect(await askAround()).toMatchObject({ silent: [], nextSuspectMs: null });
  });

  it("that lives after all is back with its next beat, and its new claims are its own", async () => {
    await clock.advance(60_000);
    await look();
    await beat();
    const [each] = await claimNew(store, worker, "a", 1);
    expect(await recover(recovery(each))).toEqual([false]);
    const claim = { orphans: true, limit: 100, holders: [] };
    expect((await store.findStale(claim)).claims).toEqual([]);
  });

  it("is not given up where a claim of its own is carried out after the look for them", async () => {
    await enqueue(store, job("a"));
    await clock.advance(60_000);
    const late = new PostgresStore({
      pool: {
        ...recorder,
        query: async (query) => {
          const answer = await pool.query(query);
          if (verbOf(query) === "find_stale") await store.claim(claimRequest(worker, ["a"]));
          return answer;
        },
      },
    });
    const holders = [{ worker, overdueOnly: false }];
    expect(await late.findStale({ holders, orphans: false, limit: 100 })).toEqual({ claims: [] });
    expect((await look()).claims).toMatchObject([{ holder: worker, overdue: false }]);
    const { rows } = await pool.query("select stopping_at from venturi_workers");
    expect(rows).toEqual([{ stopping_at: null }]);
  });

  it("is not given up while it holds a claim, nor when it lives", async () => {
    await claimNew(store, worker, "a", 1);
    const idle = await startWorker(store, patient);
    const holders = [worker, idle].map((each) => ({ worker: each, overdueOnly: false }));
    await store.findStale({ holders, orphans: false, limit: 100 });
    await clock.advance(60_000);
    await store.beat({ worker: idle, ...registration, ...patient });
    await store.findStale({ holders, orphans: false, limit: 100 });
    const { rows } = await pool.query(
      "select 1 from venturi_workers where stopping_at is not null",
    );
    expect(rows).toEqual([]);
  });
});

describe("workers are woken", () => {
  it("once for all that has been recovered, if it is due soon enough", async () => {
    await startWorker(store, { pollMaxMs: 60_000, workerTimeoutMs: 3.6e9 });
    const jobs = await claimNew(store, worker, "a", 4);
    const [one, two, three, four] = jobs as readonly [
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
    ];
    await clock.advance(leaseMs);
    const both = [recovery(one), recovery(two, { delayMs: 61_000 })];
    expect(await wakeUps.sentBy(() => recover(...both))).toBe(1);
    expect(await wakeUps.sentBy(() => recover(recovery(three, { delayMs: 59_000 })))).toBe(1);
    expect(await wakeUps.sentBy(() => recover(recovery(four, { delayMs: 61_000 })))).toBe(0);
  });

  it("not for what died or was not recovered", async () => {
    const [each] = await claimNew(store, worker, "a", 1);
    expect(await wakeUps.sentBy(() => recover(recovery(each)))).toBe(0);
    await clock.advance(leaseMs);
    expect(await wakeUps.sentBy(() => recover(recovery(each, { outcome: "dead" })))).toBe(0);
    expect(await jobOf(each.id)).toMatchObject({ status: "dead" });
  });
});

it("a thousand claims are recovered by one statement, none by none", async () => {
  await addBacklog(pool, { kind: "a", count: 1_000 });
  const { jobs } = await store.claim(claimRequest(worker, ["a"], { limit: 1_000 }));
  await clock.advance(leaseMs);
  const recoveries = jobs.map((each, index) =>
    recovery(each, { outcome: index % 2 === 0 ? "dead" : "stale-recovered" }),
  );
  const queries = await recorder.queriesOf(async () => {
    expect(new Set(await recover(...recoveries))).toEqual(new Set([true]));
  });
  expect(queries).toHaveLength(1);
  expect(await recorder.queriesOf(() => recover())).toEqual([]);
});
