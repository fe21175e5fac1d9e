import type { ClaimedJob, JobId, SettlementOutcome, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import {
  claimNew,
  claimRequest,
  enqueue,
  job,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const clock = await stopSqlClock(pool);
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store);
});
afterEach(() => expectInvariants(pool));

const claimed = async (): Promise<ClaimedJob> => (await claimNew(store, worker, "a", 1))[0];

async function settle(run: ClaimedJob, outcome: SettlementOutcome): Promise<void> {
  await store.settle({ worker, settlements: [settlement(run, outcome)] });
}

async function failureCount(id: JobId): Promise<number | undefined> {
  return (await store.findJob({ id })).job?.failureCount;
}

/** Does `work`, which must be one statement that leaves one entry; says which. */
async function onlyEntry(jobId: JobId, work: () => Promise<unknown>): Promise<string | undefined> {
  const before = (await store.readJournal({ jobId })).entries.length;
  const statements = await recorder.queriesOf(work);
  expect(statements).toHaveLength(1);
  const added = (await store.readJournal({ jobId })).entries.slice(before);
  expect(added).toHaveLength(1);
  return added[0]?.outcome;
}

describe("exactly one journal entry, written in the same statement as the transition, is left by", () => {
  it.each(["completed", "paused", "retried", "dead", "released"] as const)(
    "a run that is %s",
    async (outcome) => {
      const run = await claimed();
      expect(await onlyEntry(run.id, () => settle(run, outcome))).toBe(outcome);
    },
  );

  it.each(["stale-recovered", "dead"] as const)(
    "a run that is recovered as %s, though no handler ever started",
    async (outcome) => {
      const run = await claimed();
      await clock.advance(run.leaseMs);
      const { id: jobId, runCount } = run;
      const recoveries = [{ jobId, runCount, holder: worker, outcome, delayMs: 0, note: "lost" }];
      expect(await onlyEntry(jobId, () => store.recover({ recoveries }))).toBe(outcome);
      expect(await failureCount(jobId)).toBe(1);
    },
  );

  it.each(["keep", "replace"] as const)("a merge that is %s", async (merge) => {
    const [id = ""] = await enqueue(store, job("a", { dedupKey: "k" }));
    const again = job("a", { dedupKey: "k", merge });
    expect(await onlyEntry(id, () => store.enqueue({ jobs: [again] }))).toBe("merged");
  });

  it("a cancellation, and by putting a dead job back", async () => {
    const [id = ""] = await enqueue(store, job("b"));
    expect(await onlyEntry(id, () => store.cancel({ id }))).toBe("cancelled");
    const run = await claimed();
    await settle(run, "dead");
    expect(await onlyEntry(run.id, () => store.retry({ id: run.id }))).toBe("requeued");
  });
});

it("pauses, releases, merges and cancellations never count as failures; retries and recoveries do", async () => {
  const [id = ""] = await enqueue(store, job("a", { dedupKey: "k" }));
  const claim = async () => {
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    return jobs[0] as ClaimedJob;
  };
  const counts: (number | undefined)[] = [];
  for (const outcome of ["retried", "paused", "released", "retried"] as const) {
    await settle(await claim(), outcome);
    counts.push(await failureCount(id));
  }
  for (const merge of ["keep", "replace"] as const)
    await enqueue(store, job("a", { dedupKey: "k", merge }));
  counts.push(await failureCount(id));
  await store.cancel({ id });
  counts.push(await failureCount(id));
  expect(counts).toEqual([1, 1, 1, 2, 2, 2]);
});

it("runs rise by one with every claim, whatever ended the one before; a hand-back takes its rise back", async () => {
  const [id = ""] = await enqueue(store, job("a"));
  const runs: number[] = [];
  for (const outcome of ["paused", "retried", null, "released", "completed"] as const) {
    const { jobs } = await store.claim(claimRequest(worker, ["a"]));
    const [run] = jobs as readonly [ClaimedJob];
    runs.push(run.runCount);
    if (outcome === null)
      await store.handBack({ worker, claims: [{ jobId: id, runCount: run.runCount }] });
    else await settle(run, outcome);
  }
  expect(runs).toEqual([1, 2, 3, 3, 4]);
});

describe("terminal jobs", () => {
  it.each(["completed", "dead"] as const)(
    "that are %s stay until they are cleaned up",
    async (outcome) => {
      const run = await claimed();
      await settle(run, outcome);
      await clock.advance(365 * 86_400_000);
      await store.claim(claimRequest(worker, ["a"]));
      expect((await store.findJob({ id: run.id })).job).toMatchObject({ status: outcome });
    },
  );
});

it("a turn whose tiers hold nothing takes of the others in the same statement", async () => {
  const [id] = await enqueue(store, job("a", { priority: "high" }));
  // The sixteenth turn, Low's: one job is wanted, so that a second look would show.
  const request = claimRequest(worker, ["a"], { limit: 1, turn: { counter: 15, ratio: 4 } });
  const statements = await recorder.queriesOf(async () => {
    expect((await store.claim(request)).jobs.map((each) => each.id)).toEqual([id]);
  });
  expect(statements).toHaveLength(1);
});

it("every column of time has a time zone", async () => {
  const { rows } = await pool.query(
    `select table_name, column_name, data_type from information_schema.columns
    where table_name like 'venturi%' and (data_type like 'timestamp%' or data_type like 'date%'
      or data_type like 'time%' or column_name like '%\\_at')`,
  );
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter(({ data_type }) => data_type !== "timestamp with time zone")).toEqual([]);
});
