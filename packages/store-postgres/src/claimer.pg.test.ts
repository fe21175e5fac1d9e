import { encodeEnqueue, type JobId, type Settlement, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Claimer } from "./claimer.ts";
import type { PgQuery } from "./pg-like.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, removeJobs } from "./testing/backlog.ts";
import { claimerOn } from "./testing/claimer-on.ts";
import { Explainer } from "./testing/explainer.ts";
import { recordingPool } from "./testing/recording-pool.ts";
import { claimRequest, job, newId, settlement } from "./testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool });
const worker = 4711;

let now: number;
let claimer: Claimer;

beforeEach(async () => {
  await removeJobs(pool);
  await pool.query("vacuum venturi_queue");
  now = 0;
  claimer = claimerOn(recorder, () => now);
});

afterEach(() => expectInvariants(pool));

const claim = (limit: number) => claimer.claim(claimRequest(worker, ["a"], { limit }));

describe("a job that is committed late, with an early place in the order", () => {
  let other: pg.PoolClient;
  let late: JobId;
  let others: JobId[];

  /** Of each claim, while each tier has its turn to be walked from the start, the jobs in order. */
  async function claimOfEachTier(limit: number): Promise<readonly (readonly JobId[])[]> {
    const claims: (readonly JobId[])[] = [];
    for (let n = 0; n < 3; n += 1) claims.push((await claim(limit)).jobs.map(({ id }) => id));
    return claims;
  }

  /** Claims until the marks have passed the place of jobs that are committed only then. */
  async function passBy(backlog: number, count = 1): Promise<void> {
    other = await pool.connect();
    others = Array.from({ length: count }, () => newId());
    [late] = others as [JobId];
    await addBacklog(pool, { kind: "a", count: 5 });
    await other.query("begin");
    const jobs = others.map((id) => job("a", { id }));
    await other.query("select venturi_enqueue_v1($1)", [encodeEnqueue(jobs)]);
    await addBacklog(pool, { kind: "a", count: backlog });
    for (let n = 0; n < 10; n += 1) {
      await claim(5);
      now += 30;
    }
    await other.query("commit");
    other.release();
  }

  it("is passed by while there is a backlog, and claimed by the next walk from the start, a second later", async () => {
    await passBy(1_000);
    expect((await claim(5)).jobs.map(({ id }) => id)).not.toContain(late);
    now += 1_000;
    expect((await claimOfEachTier(5)).map(([first]) => first)).toContain(late);
  });

  it("brings with it all that were committed with it, one claim after another", async () => {
    await passBy(1_000, 23);
    now += 1_000;
    await claimOfEachTier(5);
    const { rows } = await pool.query(
      "select 1 from venturi_queue q where claimed_by is null and job_id = any ($1)",
      [others.map(toUuid)],
    );
    const left = rows.length;
    expect(left).toBeGreaterThan(0);
    for (let n = 0; n * 5 < left; n += 1) {
      const { jobs } = await claim(5);
      expect(jobs.slice(0, left - n * 5).every(({ id }) => others.includes(id))).toBe(true);
    }
  });

  it("is claimed at once where the claim would come back short", async () => {
    await passBy(60);
    const { jobs, blocked } = await claim(100);
    expect(jobs.map(({ id }) => id)).toContain(late);
    expect(blocked).toBe(false);
  });

  it("is claimed within a second where claims take hundreds of jobs at once, and come back short", async () => {
    await passBy(600);
    const { jobs, blocked } = await claim(1_000);
    expect(jobs.length).toBeGreaterThan(500);
    expect(jobs.map(({ id }) => id)).not.toContain(late);
    // Not a true answer yet: whoever asked asks again.
    expect(blocked).toBe(true);
    now += 1_000;
    const firsts: (JobId | undefined)[] = [];
    for (let n = 0; n < 3; n += 1) {
      await addBacklog(pool, { kind: "a", count: 600 });
      firsts.push((await claim(1_000)).jobs[0]?.id);
    }
    expect(firsts).toContain(late);
  });

  it("is claimed at once as soon as little comes", async () => {
    await passBy(600);
    await claim(1_000);
    const { jobs, blocked } = await claim(1_000);
    expect(jobs.map(({ id }) => id)).toEqual([late]);
    expect(blocked).toBe(false);
  });

  it("is returned in its place among those of a claim that looked twice", async () => {
    await passBy(60);
    const { jobs } = await claim(100);
    expect(jobs[0]?.id).toBe(late);
  });
});

it("scheduled jobs that are committed late, before the due mark, are found within a second and all of them at once", async () => {
  const lateCount = 23;
  const other = await pool.connect();
  await addBacklog(pool, { kind: "a", count: 2_000, tier: 2 });
  await addBacklog(pool, { kind: "a", count: 200, tier: 0, dueInMs: -60_000 });
  await other.query("begin");
  await other.query(
    `with job as (
      insert into venturi_jobs (id, created_at, kind_id, priority, payload, headers)
      select gen_random_uuid(), now(), id, 0, '{}', '{"late": "1"}'
      from venturi_kinds, generate_series(1, $1) where name = 'a' returning id, kind_id
    )
    insert into venturi_queue (job_id, kind_id, priority, visible_at, scheduled)
    select id, kind_id, 0, now() - interval '120 s', true from job`,
    [lateCount],
  );
  const claimLate = async () =>
    (await claim(5)).jobs.filter(({ headers }) => headers?.["late"] === "1").length;
  // Until the due marks have passed them.
  for (let n = 0; n < 10; n += 1) {
    expect(await claimLate()).toBe(0);
    now += 30;
  }
  await other.query("commit");
  other.release();
  expect(await claimLate()).toBe(0);
  now += 1_000;
  let found = 0;
  // One claim for each tier, of which one finds the first of them, and then one for each five.
  for (let n = 0; n < 3 + lateCount / 5; n += 1) found += await claimLate();
  expect(found).toBe(lateCount);
});

describe("jobs that others hold, at the head of the queue", () => {
  it("are walked past once a second, not by every claim", async () => {
    await addBacklog(pool, { kind: "a", count: 20_000, claimedBy: worker + 1 });
    await addBacklog(pool, { kind: "a", count: 1_000 });
    const explainer = await Explainer.open(pool);
    const pages: number[] = [];
    for (let round = 0; round < 40; round += 1) {
      const [query] = await recorder.queriesOf(() => claim(5));
      if (query?.name?.startsWith("venturi_claim_"))
        pages.push((await explainer.run(forOneJob.claim(query))).buffers);
      now += 30;
    }
    explainer.close();
    const dear = pages.filter((each) => each > 100);
    // Those before the first mark, and the walk from the start a second later.
    expect(dear.length).toBeLessThanOrEqual(4);
    expect(Math.max(...dear)).toBeGreaterThan(500);
  });
});

describe("behind a snapshot that somebody holds", () => {
  it.each([
    ["claims", "claim", undefined],
    ["promotions", "promote", -60_000],
  ] as const)(
    "%s near the end of 20,000 jobs touch no more pages than those at the start",
    async (_, verb, dueInMs) => {
      await addBacklog(pool, {
        kind: "a",
        count: 20_000,
        ...(dueInMs !== undefined && { dueInMs }),
      });
      const holder = await pool.connect();
      await holder.query("begin isolation level repeatable read");
      await holder.query("select 1 from venturi_meta");
      const { early, late, fromStart } = await drain(verb);
      await holder.query("commit");
      holder.release();
      expect(early).toBeLessThan(60);
      expect(late).toBeLessThan(60);
      // What the marks are for.
      expect(fromStart).toBeGreaterThan(500);
    },
  );

  it("claims that take all there is, as much as they may, touch no more pages at the end either", async () => {
    const holder = await pool.connect();
    await holder.query("begin isolation level repeatable read");
    await holder.query("select 1 from venturi_meta");
    await claim(5);
    const explainer = await Explainer.open(pool);
    const pages: number[] = [];
    for (let round = 0; round < 60; round += 1) {
      await addBacklog(pool, { kind: "a", count: 200 });
      let settlements: Settlement[] = [];
      const queries = await recorder.queriesOf(async () => {
        settlements = (await claim(200)).jobs.map((each) => settlement(each));
      });
      expect(settlements).toHaveLength(200);
      const sent = queries.at(-1) as PgQuery;
      pages.push((await explainer.run(forOneJob.claim(sent))).buffers);
      await store.settle({ worker, settlements });
      now += 30;
    }
    await holder.query("commit");
    holder.release();
    explainer.close();
    expect(median(pages.slice(-20))).toBeLessThan(100);
    // Once a second everything is looked at.
    expect(Math.max(...pages)).toBeGreaterThan(100);
  });

  /** Pages that a statement touches to find one job: in the second twentieth, in the last, and without its marks. */
  async function drain(verb: keyof typeof forOneJob) {
    const explainer = await Explainer.open(pool);
    const pages = async (query: PgQuery) => (await explainer.run(query)).buffers;
    const early: number[] = [];
    const late: number[] = [];
    let fromStart = 0;
    for (let round = 1; round < 200; round += 1) {
      let settlements: Settlement[] = [];
      const queries = await recorder.queriesOf(async () => {
        settlements = (await claim(100)).jobs.map((each) => settlement(each));
      });
      expect(settlements).toHaveLength(100);
      const sent = queries.filter(({ name }) => name?.startsWith(`venturi_${verb}_`)).at(-1);
      if (sent !== undefined) {
        const query = forOneJob[verb](sent);
        if (round > 10 && round <= 20) early.push(await pages(query));
        if (round > 190) late.push(await pages(query));
        if (round === 199) fromStart = await pages(withoutMarks[verb](query));
      }
      await store.settle({ worker, settlements });
      now += 30;
    }
    explainer.close();
    return { early: median(early), late: median(late), fromStart };
  }
});

/** The statement as it would be sent to find a single job. */
const forOneJob = {
  claim: (query: PgQuery) => ({ ...query, values: replaced(query.values, [[1, 1]]) }),
  promote: (query: PgQuery) => ({ ...query, values: replaced(query.values, [[1, [1]]]) }),
};

const withoutMarks = {
  claim: (query: PgQuery) => ({
    ...query,
    values: replaced(
      query.values,
      [8, 9, 10, 11, 12, 13].map((at) => [at, [0]] as const),
    ),
  }),
  promote: (query: PgQuery) => ({
    ...query,
    values: replaced(
      query.values,
      [2, 3, 4].map((at) => [at, [0]] as const),
    ),
  }),
};

function replaced(
  values: readonly unknown[],
  changes: readonly (readonly [at: number, value: unknown])[],
): unknown[] {
  const copy = [...values];
  for (const [at, value] of changes) copy[at] = value;
  return copy;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
