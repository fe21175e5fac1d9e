import type { ClaimResult, JobId, Priority, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import {
  claimKind,
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

const claim = (kinds: readonly string[], limit = 10): Promise<ClaimResult> =>
  store.claim(claimRequest(worker, kinds, { limit }));

const idsOf = ({ jobs }: ClaimResult): JobId[] => jobs.map(({ id }) => id);

describe("a scheduled job", () => {
  it("is not claimed a millisecond too early, and is claimed when the database's clock says so", async () => {
    const [id] = await enqueue(store, job("a", { delayMs: 60_000 }));
    expect(await claim(["a"])).toEqual({ jobs: [], waitMs: 60_000, blocked: false });
    await clock.advance(59_999);
    expect(await claim(["a"])).toEqual({ jobs: [], waitMs: 1, blocked: false });
    await clock.advance(1);
    expect(await claim(["a"])).toMatchObject({ jobs: [{ id, latencyMs: 0 }], waitMs: null });
  });

  it("may be due at a moment, by the database's clock", async () => {
    const runAt = (await clock.now()) + 5_000;
    const [id] = await enqueue(store, job("a", { runAt }));
    expect(await claim(["a"])).toMatchObject({ jobs: [], waitMs: 5_000 });
    await clock.advance(7_000);
    expect(await claim(["a"])).toMatchObject({ jobs: [{ id, latencyMs: 2_000 }] });
  });

  it("arrives when it is found due: behind what waits already, in front of what comes later", async () => {
    const [scheduled] = await enqueue(store, job("a", { delayMs: 1_000 }));
    const [waiting] = await enqueue(store, job("a"));
    await clock.advance(1_000);
    const [first] = idsOf(await claim(["a"], 1));
    const [later] = await enqueue(store, job("a"));
    expect([first, ...idsOf(await claim(["a"]))]).toEqual([waiting, scheduled, later]);
  });

  it("is one that was paused or retried with a delay, too", async () => {
    await enqueue(store, job("a"), job("a"));
    const { jobs } = await claim(["a"]);
    const [paused, retried] = jobs.map((each, index) =>
      settlement(each, index === 0 ? "paused" : "retried", { delayMs: 3_000 - index, note: "x" }),
    );
    if (paused === undefined || retried === undefined) throw new Error("two jobs were enqueued");
    await store.settle({ worker, settlements: [paused, retried] });
    expect(await claim(["a"])).toMatchObject({ jobs: [], waitMs: 2_999 });
    await clock.advance(3_000);
    expect(idsOf(await claim(["a"]))).toEqual([retried.jobId, paused.jobId]);
  });
});

describe("jobs that have become due", () => {
  it("are claimed by priority, then in the order they were due, whatever their kinds", async () => {
    const [a, b, c, d, e] = await enqueue(
      store,
      job("a", { delayMs: 300, priority: "low" }),
      job("b", { delayMs: 200 }),
      job("a", { delayMs: 100 }),
      job("b", { delayMs: 400, priority: "high" }),
      job("a", { delayMs: 150 }),
    );
    await clock.advance(1_000);
    expect(idsOf(await claim(["a", "b"]))).toEqual([d, c, e, b, a]);
  });

  it("do not make one of high priority wait behind a thousand of low", async () => {
    await addBacklog(pool, { kind: "a", count: 1_000, tier: 2, dueInMs: 10 });
    const [high] = await enqueue(store, job("a", { delayMs: 5_000, priority: "high" }));
    const [normal] = await enqueue(store, job("b", { delayMs: 6_000 }));
    await clock.advance(6_000);
    expect(idsOf(await claim(["a", "b"], 1))).toEqual([high]);
    expect(idsOf(await claim(["a", "b"], 1))).toEqual([normal]);
    expect((await claim(["a", "b"], 1)).jobs).toMatchObject([{ priority: "low" }]);
  });

  it("of other kinds, or of kinds that are paused, are left alone", async () => {
    await enqueue(store, job("b", { delayMs: 10 }), job("c", { delayMs: 10 }));
    await clock.advance(10);
    await pool.query("update venturi_kinds set paused_at = now() where name = 'c'");
    expect(await claim(["a", "c"])).toEqual({ jobs: [], waitMs: null, blocked: false });
    const { rows } = await pool.query("select scheduled from venturi_queue");
    expect(rows).toEqual([{ scheduled: true }, { scheduled: true }]);
    await pool.query("update venturi_kinds set paused_at = null");
  });

  it("are never more than the claim and each kind have room for", async () => {
    await addBacklog(pool, { kind: "a", count: 50, dueInMs: -100 });
    await addBacklog(pool, { kind: "b", count: 50, dueInMs: -100 });
    const kinds = [claimKind("a", { limit: 3 }), claimKind("b", { limit: 40 })];
    const { jobs, blocked } = await store.claim(claimRequest(worker, kinds, { limit: 20 }));
    expect(jobs.filter(({ kind }) => kind === "a").length).toBeLessThanOrEqual(3);
    expect(jobs).toHaveLength(20);
    expect(blocked).toBe(false);
  });

  it("of a kind without room block nobody", async () => {
    await addBacklog(pool, { kind: "a", count: 5, dueInMs: -100 });
    const kinds = [claimKind("a", { limit: 1 }), claimKind("b")];
    const { jobs, blocked } = await store.claim(claimRequest(worker, kinds));
    expect([jobs.length, blocked]).toEqual([1, false]);
  });

  it("that another transaction has locked are said to block, and keep nobody from those behind", async () => {
    const [one, two, three] = await enqueue(
      store,
      job("a", { delayMs: 1 }),
      job("a", { delayMs: 2 }),
      job("a", { delayMs: 3 }),
    );
    await clock.advance(10);
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query(
        "select 1 from venturi_queue where venturi_ulid(job_id) = any ($1) for update",
        [[one, two]],
      );
      expect(await claim(["a"], 1)).toMatchObject({ jobs: [{ id: three }], blocked: false });
      expect(await claim(["a"])).toEqual({ jobs: [], waitMs: null, blocked: true });
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(idsOf(await claim(["a"]))).toEqual([one, two]);
  });

  it("that are excluded keep nobody from those behind", async () => {
    const [one, two] = await enqueue(store, job("a", { delayMs: 1 }), job("a", { delayMs: 2 }));
    await clock.advance(10);
    const exclude = one === undefined ? [] : [one];
    const request = claimRequest(worker, ["a"], { limit: 1, exclude });
    expect(idsOf(await store.claim(request))).toEqual([two]);
  });

  it("are each claimed once by claimers at the same time", async () => {
    await addBacklog(pool, { kind: "a", count: 500, dueInMs: -1_000 });
    const workers = await Promise.all([1, 2, 3, 4].map(() => startWorker(store)));
    const claimed = await Promise.all(
      workers.map(async (each) => {
        const ids: JobId[] = [];
        for (;;) {
          const { jobs, blocked } = await store.claim(claimRequest(each, ["a"], { limit: 7 }));
          if (jobs.length === 0 && !blocked) return ids;
          for (const { id } of jobs) ids.push(id);
        }
      }),
    );
    expect(new Set(claimed.flat()).size).toBe(500);
    expect(claimed.flat()).toHaveLength(500);
  });
});

describe("the wait that a claim returns", () => {
  it("is that of the soonest job of the kinds asked for, whatever its priority", async () => {
    await enqueue(
      store,
      job("a", { delayMs: 9_000, priority: "high" }),
      job("a", { delayMs: 4_000, priority: "low" }),
      job("b", { delayMs: 2_000 }),
    );
    expect((await claim(["a"])).waitMs).toBe(4_000);
    expect((await claim(["a", "b"])).waitMs).toBe(2_000);
    expect((await claim(["c"])).waitMs).toBeNull();
  });

  it("counts a kind at its cap", async () => {
    await enqueue(store, job("a"), job("a", { delayMs: 4_000 }));
    for (let n = 0; n < 2; n += 1) await enqueue(store, job("a"));
    const request = claimRequest(worker, [claimKind("a", { limit: 1 }), claimKind("b")]);
    for (let n = 0; n < 3; n += 1) {
      const { jobs, waitMs } = await store.claim(request);
      expect([jobs.length, waitMs]).toEqual([1, 4_000]);
    }
  });

  it("comes with the jobs that were there", async () => {
    await enqueue(store, job("a"), job("a", { delayMs: 4_000 }));
    expect(await claim(["a"])).toMatchObject({ jobs: [{}], waitMs: 4_000, blocked: false });
  });
});

describe("a claim", () => {
  const statements = async (work: () => Promise<unknown>) =>
    (await recorder.queriesOf(work)).map(({ name }) => name?.split("_")[1]);

  it("promotes only when something is due", async () => {
    await enqueue(store, job("a", { delayMs: 60_000 }));
    await addBacklog(pool, { kind: "a", count: 100 });
    await claim(["a"], 1);
    expect(await statements(() => claim(["a"], 1))).toEqual(["claim"]);
    await clock.advance(60_000);
    expect(await statements(() => claim(["a"], 1))).toEqual(["claim", "promote", "claim"]);
    expect(await statements(() => claim(["a"], 1))).toEqual(["claim"]);
  });

  it("never misses a job that was due when it was called, whatever is scheduled, and whenever", async () => {
    const priorities: readonly Priority[] = ["high", "normal", "low"];
    const step = fc.oneof(
      fc.record({
        enqueue: fc.array(
          fc.record({
            kind: fc.constantFrom("a", "b"),
            priority: fc.constantFrom(...priorities),
            delayMs: fc.nat(40),
          }),
          { minLength: 1, maxLength: 6 },
        ),
      }),
      fc.record({ advance: fc.integer({ min: 1, max: 30 }) }),
      fc.record({ claim: fc.integer({ min: 1, max: 4 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        await removeJobs(pool);
        worker = await startWorker(store);
        let now = await clock.now();
        const pending = new Map<JobId, { readonly at: number; readonly tier: number }>();
        for (const each of steps) {
          if ("advance" in each) now = await clock.advance(each.advance);
          if ("enqueue" in each) {
            const ids = await enqueue(
              store,
              ...each.enqueue.map(({ kind, ...rest }) => job(kind, rest)),
            );
            for (const [index, id] of ids.entries()) {
              const { delayMs = 0, priority = "normal" } = each.enqueue[index] ?? {};
              pending.set(id, { at: now + delayMs, tier: priorities.indexOf(priority) });
            }
          }
          if ("claim" in each) {
            const due = [...pending.values()].filter(({ at }) => at <= now);
            const { jobs } = await claim(["a", "b"], each.claim);
            const tiers = due.map(({ tier }) => tier).sort();
            expect(jobs.map(({ priority }) => priorities.indexOf(priority))).toEqual(
              tiers.slice(0, each.claim),
            );
            for (const { id } of jobs) {
              expect(pending.get(id)?.at).toBeLessThanOrEqual(now);
              pending.delete(id);
            }
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
