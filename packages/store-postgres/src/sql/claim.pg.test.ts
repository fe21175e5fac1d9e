import type { ClaimRequest, JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, kindId, removeJobs } from "../testing/backlog.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import {
  claimKind,
  claimRequest,
  enqueue,
  job,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

beforeEach(() => removeJobs(pool));
afterEach(() => expectInvariants(pool));

/** Claims for a worker that has claimed nothing before. */
async function claim(kinds: ClaimRequest["kinds"] | string[], changes: Partial<ClaimRequest> = {}) {
  return store.claim(claimRequest(await startWorker(store), kinds, changes));
}

async function claimedIds(...args: Parameters<typeof claim>): Promise<JobId[]> {
  return (await claim(...args)).jobs.map(({ id }) => id);
}

describe("what a claim takes", () => {
  it("is in order of priority, then arrival, whatever the kinds", async () => {
    const [low, a, high, b, high2] = await enqueue(
      store,
      job("a", { priority: "low" }),
      job("a"),
      job("b", { priority: "high" }),
      job("b"),
      job("a", { priority: "high" }),
    );
    expect(await claimedIds(["a", "b"])).toEqual([high, high2, a, b, low]);
  });

  it("is in order of arrival, not of ids", async () => {
    const jobs = [job("a"), job("a"), job("a")].reverse();
    const ids = await enqueue(store, ...jobs);
    expect(await claimedIds(["a"])).toEqual(ids);
  });

  it("is in that order also among a thousand", async () => {
    for (const tier of [2, 0, 1] as const) await addBacklog(pool, { kind: "a", count: 500, tier });
    const { jobs } = await claim(["a"], { limit: 1_000 });
    const { rows } = await pool.query(
      `select venturi_ulid(job_id) as id from venturi_queue where claimed_by is not null
      order by priority, seq`,
    );
    expect(jobs).toHaveLength(1_000);
    expect(jobs.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    expect(new Set(jobs.map(({ priority }) => priority))).toEqual(new Set(["high", "normal"]));
  });

  it("is no more than the limit, and no more of a kind than its own", async () => {
    await addBacklog(pool, { kind: "a", count: 50, tier: 0 });
    await addBacklog(pool, { kind: "b", count: 50 });
    const kinds = [claimKind("a", { limit: 2 }), claimKind("b", { limit: 100 })];
    const { jobs } = await claim(kinds, { limit: 16 });
    expect(jobs.map(({ kind }) => kind)).toEqual([..."aa", ..."b".repeat(14)]);
  });

  it("is nothing of other kinds", async () => {
    await enqueue(store, job("b"), job("c"));
    expect(await claimedIds(["a"])).toEqual([]);
  });

  it("is nothing of kinds that are paused, nor are they waited for", async () => {
    await enqueue(
      store,
      job("a"),
      job("b", { delayMs: 60_000 }),
      job("b"),
      job("b", { delayMs: 0 }),
    );
    await pool.query("update venturi_kinds set paused_at = now() where name = 'b'");
    const { jobs, waitMs, blocked } = await claim(["a", "b"]);
    expect(jobs.map(({ kind }) => kind)).toEqual(["a"]);
    expect([waitMs, blocked]).toEqual([null, false]);
    await pool.query("update venturi_kinds set paused_at = null");
    expect(await claimedIds(["a", "b"])).toHaveLength(2);
  });

  it("is nothing that is excluded, until it no longer is", async () => {
    const [one, two, three] = (await enqueue(store, job("a"), job("a"), job("a"))) as [
      JobId,
      JobId,
      JobId,
    ];
    expect(await claimedIds(["a"], { exclude: [one, three] })).toEqual([two]);
    const excluded = await claim(["a"], { exclude: [one, three] });
    expect(excluded).toEqual({ jobs: [], waitMs: null, blocked: false });
    expect(await claimedIds(["a"])).toEqual([one, three]);
  });

  it("is nothing that somebody else holds", async () => {
    const ids = await enqueue(store, job("a"), job("a"), job("a"));
    expect(await claimedIds(["a"], { limit: 2 })).toEqual(ids.slice(0, 2));
    expect(await claimedIds(["a"], { limit: 2 })).toEqual(ids.slice(2));
    expect(await claimedIds(["a"], { limit: 2 })).toEqual([]);
  });

  it("is no row whose runs can no longer be counted, and that row fails nobody else's claim", async () => {
    const [absurd, other] = await enqueue(store, job("a", { priority: "high" }), job("a"));
    await pool.query(
      `update venturi_queue set run_count = 2147483647 where venturi_ulid(job_id) = $1`,
      [absurd],
    );
    expect(await claim(["a"])).toMatchObject({ jobs: [{ id: other }], blocked: false });
    expect(await claimedIds(["a"])).toEqual([]);
    await removeJobs(pool);
  });
});

describe("what a claim returns", () => {
  it("is all that a run needs", async () => {
    const payload = '{"b": [1, 2.50], "a": "x"}';
    const headers = { trace: "1" };
    const [id] = await enqueue(store, job("a", { payload, headers, priority: "high" }));
    const { jobs } = await claim([claimKind("a", { leaseMs: 30_000 })]);
    expect(jobs).toEqual([
      {
        id,
        kind: "a",
        priority: "high",
        payload: '{"a": "x", "b": [1, 2.50]}',
        carry: null,
        headers: { trace: "1" },
        runCount: 1,
        failureCount: 0,
        latencyMs: expect.any(Number),
        leaseMs: 30_000,
        leaseExpiresAt: expect.any(Date),
      },
    ]);
  });

  it("counts runs and failures, and hands over the carry as it was left", async () => {
    await enqueue(store, job("a"));
    const worker = await startWorker(store);
    for (const run of [1, 2, 3]) {
      const { jobs } = await store.claim(claimRequest(worker, ["a"]));
      expect(jobs).toMatchObject([
        { runCount: run, failureCount: run - 1, carry: run === 1 ? null : `{"run": ${run - 1}}` },
      ]);
      const retried = jobs.map((each) =>
        settlement(each, "retried", { carry: `{"run":${run}}`, note: "x" }),
      );
      await store.settle({ worker, settlements: retried });
    }
  });

  it("is how long a job has been due, by the database's clock", async () => {
    await enqueue(store, job("a"));
    await pool.query("update venturi_queue set visible_at = now() - interval '90 s'");
    const { jobs } = await claim(["a"]);
    expect(jobs[0]?.latencyMs).toBeGreaterThanOrEqual(90_000);
    expect(jobs[0]?.latencyMs).toBeLessThan(150_000);
  });
});

describe("the claim of a job", () => {
  const held = async () =>
    (
      await pool.query(
        `select claimed_by, backstop,
          (extract(epoch from lease_expires_at - claimed_at) * 1000)::float8 as lease_ms
        from venturi_queue order by seq`,
      )
    ).rows;

  it("carries the lease and the backstop of its kind, for whoever recovers it", async () => {
    await enqueue(store, job("a"), job("b"));
    const worker = await startWorker(store);
    const kinds = [
      claimKind("a", { leaseMs: 5_000, backstop: 3 }),
      claimKind("b", { leaseMs: 60_000, backstop: null }),
    ];
    await store.claim(claimRequest(worker, kinds));
    expect(await held()).toEqual([
      { claimed_by: worker, backstop: 3, lease_ms: 5_000 },
      { claimed_by: worker, backstop: null, lease_ms: 60_000 },
    ]);
  });

  it("has the job's own lease where it has one", async () => {
    await enqueue(store, job("a", { leaseMs: 1_234 }), job("a"));
    const { jobs } = await claim([claimKind("a", { leaseMs: 60_000 })]);
    expect(jobs.map(({ leaseMs }) => leaseMs)).toEqual([1_234, 60_000]);
    expect(await held()).toMatchObject([{ lease_ms: 1_234 }, { lease_ms: 60_000 }]);
    const { rows } = await pool.query(
      `select (extract(epoch from lease_expires_at) * 1000)::float8 as ms from venturi_queue order by seq`,
    );
    for (const [index, { leaseExpiresAt }] of jobs.entries())
      expect(Math.abs(leaseExpiresAt.getTime() - rows[index].ms)).toBeLessThanOrEqual(1);
  });
});

it("a claim of nothing writes nothing: its transaction never gets a number", async () => {
  await addBacklog(pool, { kind: "b", count: 10 });
  const client = await pool.connect();
  try {
    await client.query("begin");
    const within = new PostgresStore({ pool: recordingPool(client) });
    const request = claimRequest(123_456, ["a"]);
    expect(await within.claim(request)).toEqual({ jobs: [], waitMs: null, blocked: false });
    const number = "select pg_current_xact_id_if_assigned()::text as number";
    expect((await client.query(number)).rows).toEqual([{ number: null }]);
    await within.claim(claimRequest(123_456, ["b"], { limit: 1 }));
    expect((await client.query(number)).rows).toEqual([{ number: expect.any(String) }]);
  } finally {
    await client.query("rollback");
    client.release();
  }
});

describe("a job whose row another transaction has locked", () => {
  it("is passed over and said to block, until the transaction has ended", async () => {
    const [one, two] = await enqueue(store, job("a"), job("a"));
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue where venturi_ulid(job_id) = $1 for update", [
        one,
      ]);
      expect(await claim(["a"])).toMatchObject({ jobs: [{ id: two }], blocked: true });
      expect(await claim(["a"])).toMatchObject({ jobs: [], waitMs: null, blocked: true });
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await claim(["a"])).toMatchObject({ jobs: [{ id: one }], blocked: false });
  });

  it("keeps nobody from the jobs behind it, of whatever kind and priority", async () => {
    const locked = await enqueue(
      store,
      job("a", { priority: "high" }),
      job("b", { priority: "high" }),
      job("a", { priority: "high" }),
    );
    const low = await enqueue(store, job("a", { priority: "low" }), job("b", { priority: "low" }));
    const normal = await enqueue(store, job("b"), job("a"), job("a"));
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue where priority = 0 for update");
      const first = await claim(["a", "b"], { limit: 3 });
      expect(new Set(first.jobs.map(({ id }) => id))).toEqual(new Set(normal));
      const second = await claim(["a"], { limit: 3 });
      expect(second).toMatchObject({ jobs: [{ id: low[0] }], blocked: true });
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await claimedIds(["a", "b"])).toEqual([...locked, low[1]]);
  });

  it("does not make a kind take more than its room", async () => {
    const other = await pool.connect();
    for (const tier of [0, 1, 2] as const) {
      await addBacklog(pool, { kind: "a", count: 4, tier });
      await addBacklog(pool, { kind: "b", count: 4, tier });
    }
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue where priority = 0 for update");
      const kinds = [claimKind("a", { limit: 2 }), claimKind("b", { limit: 5 })];
      const { jobs } = await claim(kinds, { limit: 7 });
      const taken = jobs.map(({ kind, priority }) => `${kind} ${priority}`);
      expect(taken.filter((each) => each.startsWith("a"))).toHaveLength(2);
      expect(taken.filter((each) => each.startsWith("b"))).toHaveLength(5);
      expect(taken.filter((each) => each.endsWith("high"))).toHaveLength(0);
    } finally {
      await other.query("rollback");
      other.release();
    }
  });

  it("does not block a claim that got all it asked for, nor one of other kinds", async () => {
    const [one, two] = await enqueue(store, job("a"), job("a"));
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue where venturi_ulid(job_id) = $1 for update", [
        one,
      ]);
      expect(await claim(["b"])).toMatchObject({ jobs: [], blocked: false });
      expect(await claim(["a"], { limit: 1 })).toMatchObject({
        jobs: [{ id: two }],
        blocked: false,
      });
    } finally {
      await other.query("rollback");
      other.release();
    }
  });
});

it("a batch claim takes, in order of its turns, what single claims in a row would take", async () => {
  const kinds = ["a", "b", "c"];
  for (const kind of kinds) await kindId(pool, kind);
  const anyRow = fc.record({ kind: fc.constantFrom(...kinds), tier: fc.constantFrom(0, 1, 2) });
  const worker = await startWorker(store);
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyRow, { maxLength: 20 }),
      fc.integer({ min: 1, max: 12 }),
      fc.option(fc.integer({ min: 2, max: 4 })),
      fc.nat(50),
      fc.tuple(...kinds.map(() => fc.integer({ min: 1, max: 6 }))),
      async (rows, limit, ratio, counter, rooms) => {
        await removeJobs(pool);
        const priorities = ["high", "normal", "low"] as const;
        await enqueue(
          store,
          ...rows.map(({ kind, tier }) => job(kind, { priority: priorities[tier] })),
        );
        const claimKinds = kinds.map((kind, index) =>
          claimKind(kind, { limit: rooms[index] ?? 1 }),
        );
        const turn = { counter, ratio };
        const batch = await store.claim(claimRequest(worker, claimKinds, { limit, turn }));
        const back = {
          worker,
          claims: batch.jobs.map(({ id, runCount }) => ({ jobId: id, runCount })),
        };
        await store.handBack(back);

        // Not the same worker: what it has claimed before, it may pass by for up to a second.
        const other = await startWorker(store);
        const singles: JobId[] = [];
        const left = new Map(kinds.map((kind, index) => [kind, rooms[index] ?? 1]));
        while (singles.length < limit) {
          const open = kinds.filter((kind) => (left.get(kind) ?? 0) > 0);
          if (open.length === 0) break;
          const { jobs } = await store.claim(
            claimRequest(
              other,
              open.map((kind) => claimKind(kind, { limit: 1 })),
              {
                limit: 1,
                turn: { ratio, counter: counter + singles.length },
              },
            ),
          );
          const [next] = jobs;
          if (next === undefined) break;
          singles.push(next.id);
          left.set(next.kind, (left.get(next.kind) ?? 0) - 1);
        }
        expect(new Set(batch.jobs.map(({ id }) => id))).toEqual(new Set(singles));
      },
    ),
    { numRuns: 60 },
  );
});
