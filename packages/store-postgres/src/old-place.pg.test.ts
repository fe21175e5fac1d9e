import { type ClaimedJob, type JobId, toUuid, type WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PgQuery } from "./pg-like.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, removeJobs } from "./testing/backlog.ts";
import { recordingPool } from "./testing/recording-pool.ts";
import { claimRequest, settlement, startWorker } from "./testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
/** Which parameter of a claim holds the marks of the jobs of normal priority. */
const normalMarks = 9;
let store: PostgresStore;
let worker: WorkerId;

beforeEach(async () => {
  // The clock of the marks, which stands still until it is moved.
  vi.useFakeTimers({ toFake: ["performance"] });
  await removeJobs(pool);
  store = new PostgresStore({ pool: recorder });
  worker = await startWorker(store);
});

afterEach(async () => {
  vi.useRealTimers();
  await expectInvariants(pool);
});

/** A flow in which each claim brings hundreds of jobs and could have taken more. */
async function claimOfFlow(): Promise<readonly ClaimedJob[]> {
  await addBacklog(pool, { kind: "a", count: 600 });
  return (await store.claim(claimRequest(worker, ["a"], { limit: 1_000 }))).jobs;
}

/** Claims until the marks, which lag, have passed what the first of these claims brought; returns that. */
async function passBy(): Promise<readonly ClaimedJob[]> {
  await claimOfFlow();
  const early = await claimOfFlow();
  for (let n = 0; n < 4; n += 1) {
    vi.advanceTimersByTime(30);
    await claimOfFlow();
  }
  return early;
}

const retry = (job: ClaimedJob, delayMs = 0) =>
  store.settle({ worker, settlements: [settlement(job, "retried", { delayMs })] });

/** As if a worker had held the claim that is gone. */
async function recover({ id: jobId, runCount }: ClaimedJob, delayMs = 0): Promise<void> {
  const holder = worker + 1_000;
  const byAnother = "update venturi_queue set claimed_by = $1 where job_id = $2";
  await pool.query(byAnother, [holder, toUuid(jobId)]);
  const recovery = { jobId, runCount, holder, outcome: "stale-recovered", delayMs, note: "" };
  await store.recover({ recoveries: [recovery as never] });
}

describe("a job that comes back to its old place, which busy claims have passed, is first in the next claim", () => {
  it.each<[string, (job: ClaimedJob) => Promise<unknown>]>([
    ["retried at once", (job) => retry(job)],
    [
      "paused for no time",
      (job) => store.settle({ worker, settlements: [settlement(job, "paused")] }),
    ],
    ["released", (job) => store.settle({ worker, settlements: [settlement(job, "released")] })],
    [
      "handed back",
      (job) => store.handBack({ worker, claims: [{ jobId: job.id, runCount: job.runCount }] }),
    ],
    ["recovered from a worker that is gone", (job) => recover(job)],
  ])("%s", async (_, putBack) => {
    const [job] = (await passBy()) as [ClaimedJob];
    await putBack(job);
    const [first] = await claimOfFlow();
    expect(first?.id).toBe(job.id);
  });

  it("with hundreds of others", async () => {
    const back = await passBy();
    await store.settle({ worker, settlements: back.map((job) => settlement(job, "retried")) });
    const ids: JobId[] = [];
    for (let n = 0; n < 2; n += 1) ids.push(...(await claimOfFlow()).map(({ id }) => id));
    expect(new Set(ids)).toEqual(new Set([...ids, ...back.map(({ id }) => id)]));
  });

  it("with more than a claim may take", async () => {
    const back = await passBy();
    await addBacklog(pool, { kind: "a", count: 100 });
    await store.settle({ worker, settlements: back.map((job) => settlement(job, "retried")) });
    for (let n = 0; n < back.length; n += 50) {
      const { jobs } = await store.claim(claimRequest(worker, ["a"], { limit: 50 }));
      expect(jobs.map(({ id }) => id)).toEqual(back.slice(n, n + 50).map(({ id }) => id));
    }
  });

  it("as soon as it is no longer excluded", async () => {
    const [job] = (await passBy()) as [ClaimedJob];
    await addBacklog(pool, { kind: "a", count: 100 });
    await store.settle({ worker, settlements: [settlement(job, "retried")] });
    const next = async (exclude: readonly JobId[]) =>
      (await store.claim(claimRequest(worker, ["a"], { exclude }))).jobs.map(({ id }) => id);
    for (let n = 0; n < 3; n += 1) expect(await next([job.id])).not.toContain(job.id);
    expect((await next([]))[0]).toBe(job.id);
  });
});

it.each([
  ["retried", retry],
  ["recovered", recover],
])("a job that is %s and put off until later lowers no mark", async (_, putOff) => {
  const markOfNextClaim = async () => {
    const [claim] = (await recorder.queriesOf(claimOfFlow)) as [PgQuery];
    return Number((claim.values[normalMarks] as number[])[0]);
  };
  const [later, atOnce] = (await passBy()) as [ClaimedJob, ClaimedJob];
  const { seq } = (
    await pool.query("select seq::int from venturi_queue where job_id = $1", [toUuid(atOnce.id)])
  ).rows[0];
  await putOff(later, 3_600_000);
  expect(await markOfNextClaim()).toBeGreaterThan(seq);
  await putOff(atOnce, 0);
  expect(await markOfNextClaim()).toBe(seq - 1);
});
