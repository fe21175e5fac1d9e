import { encodeEnqueue, type JobId, type Settlement, silentLogger, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Claimer } from "./claimer.ts";
import { Database } from "./database.ts";
import { Kinds } from "./kinds.ts";
import type { PgQuery } from "./pg-like.ts";
import { pgSource } from "./pg-source.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, removeJobs } from "./testing/backlog.ts";
import { Explainer } from "./testing/explainer.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import {
  claimKind,
  claimRequest,
  enqueue,
  job,
  names,
  newId,
  settlement,
} from "./testing/store-fixture.ts";

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
  const options = { preparedStatements: true, owned: false, logger: silentLogger };
  const database = new Database(pgSource(recorder, options), names.prefix, silentLogger);
  claimer = new Claimer(database, new Kinds(database, names), names, () => now);
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

describe("while claims take everything that waits", () => {
  const statements = async (work: () => Promise<unknown>) =>
    (await recorder.queriesOf(work)).map(verbOf).filter((verb) => !verb.startsWith("kinds"));
  const statementsOf = (limit: number) => statements(() => claim(limit));

  beforeEach(async () => {
    await claim(5);
  });

  it("the smaller statement alone is sent, also where there is just as much as may be taken", async () => {
    for (const count of [0, 1, 0, 4, 5]) {
      await addBacklog(pool, { kind: "a", count });
      expect(await statementsOf(5)).toEqual(["claim_all"]);
    }
  });

  it("after one that took just as much as it might the larger one begins where that ended", async () => {
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim"]);
    // Short behind its marks: the rest is looked for from the start, and from then on there are none.
    await addBacklog(pool, { kind: "a", count: 3 });
    expect(await statementsOf(5)).toEqual(["claim", "claim"]);
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
    now += 1_000;
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim"]);
  });

  it("after one that took hundreds the larger one begins where that ended, until little comes", async () => {
    await addBacklog(pool, { kind: "a", count: 600 });
    expect(await statementsOf(1_000)).toEqual(["claim_all"]);
    for (let n = 0; n < 3; n += 1) {
      now += 50;
      await addBacklog(pool, { kind: "a", count: 600 });
      expect(await statementsOf(1_000)).toEqual(["claim"]);
    }
    expect(await statementsOf(1_000)).toEqual(["claim", "claim"]);
    expect(await statementsOf(1_000)).toEqual(["claim_all"]);
  });

  it("it takes whatever may be asked for", async () => {
    const most = 2_147_483_647;
    const all = () =>
      claimer.claim(claimRequest(worker, [claimKind("a", { limit: most })], { limit: most }));
    await addBacklog(pool, { kind: "a", count: 3 });
    expect(await statements(all)).toEqual(["claim_all"]);
    await addBacklog(pool, { kind: "a", count: 3 });
    expect((await all()).jobs).toHaveLength(3);
  });

  it("when it fails the next is the larger one", async () => {
    const broken = claimRequest(worker, [claimKind("a", { backstop: 1e10 })], { limit: 5 });
    await expect(claimer.claim(broken)).rejects.toMatchObject({ code: "database" });
    expect(await statementsOf(5)).toEqual(["claim"]);
  });

  it("where more waits the larger one follows, and is kept to until all is taken once more", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    expect(await statementsOf(5)).toEqual(["claim_all", "claim"]);
    expect(await statementsOf(5)).toEqual(["claim"]);
    expect((await claim(5)).jobs).toHaveLength(2);
    await addBacklog(pool, { kind: "a", count: 1 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
  });

  it("a kind that has no room for all that waits of it is nobody's reason to try again", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    const capped = () =>
      claimer.claim(claimRequest(worker, [claimKind("a", { limit: 2 }), "b"], { limit: 5 }));
    expect(await statements(capped)).toEqual(["claim_all", "claim"]);
    for (let n = 0; n < 3; n += 1) expect(await statements(capped)).toEqual(["claim"]);
  });

  it("the larger one alone is sent for hundreds of kinds", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    const kinds = ["a", ...Array.from({ length: 150 }, (_, n) => `many_${n}`)];
    const ofMany = () => claimer.claim(claimRequest(worker, kinds, { limit: 5 }));
    for (let n = 0; n < 2; n += 1) expect(await statements(ofMany)).toEqual(["claim"]);
  });

  it("what is due is promoted first", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    await addBacklog(pool, { kind: "a", count: 1, tier: 0, dueInMs: -1_000 });
    expect(await statementsOf(20)).toEqual(["claim_all", "promote", "claim"]);
    expect(await statementsOf(20)).toEqual(["claim_all"]);
  });

  it("the next that is scheduled is told of, whatever its tier", async () => {
    await addBacklog(pool, { kind: "a", count: 1, tier: 0, dueInMs: 90_000 });
    await addBacklog(pool, { kind: "a", count: 1, tier: 2, dueInMs: 30_000 });
    const { waitMs } = await claim(5);
    expect(waitMs).toBeGreaterThan(20_000);
    expect(waitMs).toBeLessThanOrEqual(30_000);
  });

  it("a job that somebody has locked is told of, and the others are claimed", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue order by seq limit 1 for update");
      expect(await claim(5)).toMatchObject({ jobs: [{}, {}], blocked: true });
      expect(await statementsOf(5)).toEqual(["claim_all"]);
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await claim(5)).toMatchObject({ jobs: [{}], blocked: false });
  });

  it("leases and backstops are those of the job and of its kind", async () => {
    await enqueue(store, job("a", { leaseMs: 5_000 }), job("a"), job("b"));
    const kinds = [
      claimKind("b", { leaseMs: 20_000, backstop: 2 }),
      claimKind("a", { leaseMs: 10_000, backstop: 1 }),
    ];
    await claimer.claim(claimRequest(worker, kinds, { limit: 5 }));
    const { rows } = await pool.query(
      `select extract(epoch from lease_expires_at - claimed_at)::int4 as lease, backstop, claimed_by as by
      from venturi_queue order by seq`,
    );
    expect(rows).toEqual([
      { lease: 5, backstop: 1, by: worker },
      { lease: 10, backstop: 1, by: worker },
      { lease: 20, backstop: 2, by: worker },
    ]);
  });
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
