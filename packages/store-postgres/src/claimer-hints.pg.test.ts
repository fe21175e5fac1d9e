import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Claimer } from "./claimer.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, removeJobs } from "./testing/backlog.ts";
import { claimerOn } from "./testing/claimer-on.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import { claimKind, claimRequest, enqueue, job, newId } from "./testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool });
const worker = 4711;

let now: number;
let claimer: Claimer;

beforeEach(async () => {
  await removeJobs(pool);
  now = 0;
  claimer = claimerOn(recorder, () => now);
  await claim();
});

afterEach(() => expectInvariants(pool));

const claim = (changes: object = {}) =>
  claimer.claim(claimRequest(worker, ["a", "b"], { limit: 5, ...changes }));

/** The statements of a claim with a hint, and the jobs that it brought. */
async function hinted(hint: JobId, changes: object = {}) {
  let ids: readonly JobId[] = [];
  const sent = await recorder.queriesOf(async () => {
    ids = (await claim({ hint, ...changes })).jobs.map(({ id }) => id);
  });
  return { ids, verbs: sent.map(verbOf) };
}

const newJob = async (kind = "a"): Promise<JobId> => (await enqueue(store, job(kind)))[0] as JobId;

describe("while claims take everything that waits, a job that a notification named", () => {
  it("is looked up by its id, again and again", async () => {
    for (let n = 0; n < 3; n += 1) {
      const id = await newJob();
      expect(await hinted(id)).toEqual({ ids: [id], verbs: ["claim_hinted"] });
    }
  });

  it("is brought as any claim brings it", async () => {
    const kinds = [
      claimKind("b", { leaseMs: 20_000, backstop: 2 }),
      claimKind("a", { leaseMs: 10_000, backstop: 1 }),
    ];
    const payload = JSON.stringify({ text: "é" });
    const at = Date.now();
    const [id] = await enqueue(store, job("b", { payload, headers: { from: "x" } }));
    const { jobs, ...rest } = await claimer.claim(
      claimRequest(worker, kinds, { hint: id as JobId }),
    );
    expect(rest).toEqual({ waitMs: null, blocked: false });
    expect(jobs).toEqual([
      {
        id,
        kind: "b",
        priority: "normal",
        payload: '{"text": "é"}',
        carry: null,
        headers: { from: "x" },
        runCount: 1,
        failureCount: 0,
        latencyMs: expect.any(Number),
        leaseMs: 20_000,
        leaseExpiresAt: expect.any(Date),
      },
    ]);
    expect(jobs[0]?.latencyMs).toBeLessThan(10_000);
    expect(Math.abs((jobs[0]?.leaseExpiresAt.getTime() ?? 0) - at - 20_000)).toBeLessThan(10_000);
    const { rows } = await pool.query(
      `select extract(epoch from lease_expires_at - claimed_at)::int4 as lease, backstop, claimed_by as by, run_count as runs
      from venturi_queue`,
    );
    expect(rows).toEqual([{ lease: 20, backstop: 2, by: worker, runs: 1 }]);
  });

  it.each([
    ["is not there", async () => newId()],
    ["is of a kind that is not asked for", () => newJob("other")],
    ["is not due", async () => (await enqueue(store, job("a", { delayMs: 60_000 })))[0] as JobId],
    [
      "is of a kind that is paused",
      async () => {
        await pool.query("update venturi_kinds set paused_at = now() where name = 'b'");
        return newJob("b");
      },
    ],
    [
      "is claimed",
      async () => {
        const id = await newJob();
        const other = claimerOn(pool, () => 0);
        await other.claim(claimRequest(worker + 1, ["a"]));
        return id;
      },
    ],
  ])("and %s brings nothing, and is no reason to ask again", async (_, make) => {
    const hint = await make();
    try {
      const sent = await recorder.queriesOf(async () => {
        expect(await claim({ hint })).toEqual({ jobs: [], waitMs: null, blocked: false });
      });
      expect(sent.map(verbOf)).toEqual(["claim_hinted"]);
    } finally {
      await pool.query("update venturi_kinds set paused_at = null");
    }
  });

  it("and somebody has locked is asked for again, as any other would be", async () => {
    const hint = await newJob();
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue for update");
      expect(await claim({ hint })).toEqual({ jobs: [], waitMs: null, blocked: true });
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await hinted(newId())).toEqual({ ids: [hint], verbs: ["claim"] });
  });

  it("leaves others to the next claim without a hint, in their order", async () => {
    const before = await newJob();
    const hint = await newJob();
    const after = await newJob("b");
    expect(await hinted(hint)).toEqual({ ids: [hint], verbs: ["claim_hinted"] });
    expect((await claim()).jobs.map(({ id }) => id)).toEqual([before, after]);
  });
});

describe("a claim with a hint looks at everything", () => {
  it("once a second, however many hints there are", async () => {
    const unnamed = await newJob();
    now = 999;
    const id = await newJob();
    expect(await hinted(id)).toEqual({ ids: [id], verbs: ["claim_hinted"] });
    now = 1_000;
    expect(await hinted(newId())).toEqual({ ids: [unnamed], verbs: ["claim_all"] });
    now = 1_999;
    expect(await hinted(newId())).toEqual({ ids: [], verbs: ["claim_hinted"] });
  });

  it("when the last one left something", async () => {
    await addBacklog(pool, { kind: "a", count: 7 });
    expect((await claim()).jobs).toHaveLength(5);
    const hint = await newJob();
    const { ids, verbs } = await hinted(hint);
    expect(verbs).not.toContain("claim_hinted");
    expect(ids).toHaveLength(3);
    expect(ids.at(-1)).toBe(hint);
  });

  it("when something scheduled has become due since", async () => {
    const [scheduled] = await enqueue(store, job("a", { delayMs: 60_000 }));
    const { waitMs } = await claim();
    const hint = await newJob();
    now = 500;
    expect((await claim({ hint: newId() })).waitMs).toBe((waitMs as number) - 500);
    await pool.query("update venturi_queue set visible_at = now() where scheduled");
    now = waitMs as number;
    expect(await hinted(hint)).toEqual({ ids: [hint, scheduled], verbs: ["promote", "claim"] });
  });

  it("when the named job is one that must not be claimed now", async () => {
    const hint = await newJob();
    const other = await newJob();
    const { ids, verbs } = await hinted(hint, { exclude: [hint] });
    expect(verbs).not.toContain("claim_hinted");
    expect(ids).toEqual([other]);
  });

  it("after one that failed", async () => {
    const kinds = [claimKind("a", { backstop: 1e10 })];
    const broken = claimRequest(worker, kinds, { hint: newId() });
    await expect(claimer.claim(broken)).rejects.toMatchObject({ code: "database" });
    const hint = await newJob();
    expect(await hinted(hint)).toEqual({ ids: [hint], verbs: ["claim"] });
  });
});
