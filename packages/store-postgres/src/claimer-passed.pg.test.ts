import { encodeEnqueue, type JobId, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Claimer } from "./claimer.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, kindId, removeJobs } from "./testing/backlog.ts";
import { claimerOn } from "./testing/claimer-on.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import { claimKind, claimRequest, job, newId, settlement } from "./testing/store-fixture.ts";
import { WalkBudget } from "./walk-budget.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool });
const worker = 4711;

let now: number;
let claimer: Claimer;
let turn: number;

beforeEach(async () => {
  await removeJobs(pool);
  await pool.query("update venturi_kinds set paused_at = null");
  now = 0;
  turn = 0;
  claimer = claimerOn(recorder, () => now);
});

afterEach(() => expectInvariants(pool));

/** The ids of what a claim brings; claimed jobs are done at once. */
async function claim(kinds: Parameters<typeof claimRequest>[1], limit: number, ratio = 4) {
  const request = claimRequest(worker, kinds, { limit, turn: { counter: turn, ratio } });
  const { jobs } = await claimer.claim(request);
  turn += jobs.length;
  const settlements = jobs.map((each) => settlement(each));
  await store.settle({ worker, settlements });
  return jobs.map(({ id }) => id);
}

/** Enqueues a job in a transaction that is still open: it has a place before all that come from now on. */
async function openEnqueue(kind: string, priority: "high" | "normal") {
  const id = newId();
  const client = await pool.connect();
  await client.query("begin");
  await client.query("select venturi_enqueue_v1($1)", [
    encodeEnqueue([job(kind, { id, priority })]),
  ]);
  const commit = async () => {
    await client.query("commit");
    client.release();
  };
  return { id, commit };
}

/** Claims until a job comes; how many claims that took, and how long by the clock of the test. */
async function claimsUntil(id: JobId, next: () => Promise<readonly JobId[]>) {
  const since = now;
  for (let claims = 1; claims <= 100; claims += 1)
    if ((await next()).includes(id)) return { claims, ms: now - since };
  throw new Error(`job ${id} has not come`);
}

describe("a job that is committed late", () => {
  it.each([0, 1, 2, 3])(
    "is found by the first look at its tier, whosever turn that claim is, and brought by the next turn of its own (%i)",
    async (phase) => {
      turn = phase;
      await addBacklog(pool, { kind: "a", count: 3 });
      const late = await openEnqueue("a", "normal");
      await addBacklog(pool, { kind: "a", count: 200, tier: 0 });
      await addBacklog(pool, { kind: "a", count: 100 });
      // As long as a job takes: each fourth claim comes a second or more after the one before the last three.
      const next = async () => {
        now += 300;
        return claim(["a"], 1);
      };
      for (let n = 0; n < 30; n += 1) await next();
      await late.commit();
      // A look at each tier within four claims, and a turn of its own within four more.
      expect((await claimsUntil(late.id, next)).claims).toBeLessThanOrEqual(16);
    },
  );

  it("is found by the first look at its kind, however often others are looked at", async () => {
    await addBacklog(pool, { kind: "capped", count: 1, tier: 0 });
    const late = await openEnqueue("capped", "high");
    await addBacklog(pool, { kind: "capped", count: 100, tier: 0 });
    await addBacklog(pool, { kind: "a", count: 2_000 });
    let n = 0;
    // Each tenth claim the kind that is capped has room.
    const next = async () => {
      now += 20;
      n += 1;
      return claim(n % 10 === 0 ? ["a", claimKind("capped", { limit: 1 })] : ["a"], 2);
    };
    for (let each = 0; each < 60; each += 1) await next();
    await late.commit();
    expect((await claimsUntil(late.id, next)).ms).toBeLessThanOrEqual(1_500);
  });
});

describe("where looks from the start have become dear", () => {
  /** Of each claim's parameters, where it begins: per tier, of each kind. */
  async function begins(kinds: Parameters<typeof claimRequest>[1], limit: number) {
    const sent = await recorder.queriesOf(() => claim(kinds, limit));
    const last = sent.filter((query) => verbOf(query) === "claim").at(-1);
    return (last?.values ?? []).slice(8, 14) as readonly (readonly number[])[];
  }

  beforeEach(() => {
    claimer = claimerOn(
      recorder,
      () => now,
      new WalkBudget({ share: 1e-6, mostMs: 1e-6, mostDebtMs: 0, freeMs: 0 }),
    );
  });

  it("a worker that has just started begins behind what has ended of all kinds and tiers, though a backlog waits", async () => {
    await kindId(pool, "b");
    await addBacklog(pool, { kind: "a", count: 100 });
    for (let n = 0; n < 4; n += 1) {
      now += 60;
      await claim(["a", "b"], 5);
    }
    const marks = await begins(["a", "b"], 5);
    expect(Math.min(...marks.flat())).toBeGreaterThan(0);
  });

  it("a kind that is paused keeps none of the others from that", async () => {
    await addBacklog(pool, { kind: "b", count: 1 });
    await pool.query("update venturi_kinds set paused_at = now() where name = 'b'");
    for (let n = 0; n < 4; n += 1) {
      now += 60;
      await claim(["a", "b"], 5);
    }
    const marks = await begins(["a", "b"], 5);
    expect(Math.min(...marks.map(([a = 0]) => a))).toBeGreaterThan(0);
    expect(Math.max(...marks.map(([, b = 0]) => b))).toBe(0);
  });

  it.each(["has no room", "is paused"])(
    "jobs that were put back keep their order, although their kind %s for a while",
    async (why) => {
      const isPaused = why === "is paused";
      await addBacklog(pool, { kind: "b", count: 40 });
      await addBacklog(pool, { kind: "a", count: 3 });
      const b = (limit: number) => claimKind("b", { limit });
      const request = claimRequest(worker, ["a", b(3)]);
      const three = (await claimer.claim(request)).jobs.filter(({ kind }) => kind === "b");
      const { rows: places } = await pool.query(
        `select kind_id as "kindId", priority as tier, seq::float8 from venturi_queue where job_id = any ($1)`,
        [three.map(({ id }) => toUuid(id))],
      );
      for (let n = 0; n < 6; n += 1) {
        now += 60;
        await claim([b(3)], 3);
      }
      const settlements = three.map((each) => settlement(each, "retried"));
      await store.settle({ worker, settlements });
      for (const place of places) claimer.putBack(place);
      const claimed: JobId[] = [];
      if (isPaused) await pool.query("update venturi_kinds set paused_at = now() where name = 'b'");
      else claimed.push(...(await claim(["a", b(1)], 10)));
      now += 10;
      await claim(isPaused ? ["a", "b"] : ["a"], 10);
      await pool.query("update venturi_kinds set paused_at = null");
      while (claimed.length < 3) {
        now += 10;
        claimed.push(...(await claim(["a", b(1)], 10)));
      }
      expect(claimed).toEqual(three.map(({ id }) => id));
    },
  );

  it("each tier is looked at at once when a job may be back at a place that nobody knows", async () => {
    await addBacklog(pool, { kind: "a", count: 60 });
    const [first] = (await claimer.claim(claimRequest(worker, ["a"], { limit: 1 }))).jobs;
    for (let n = 0; n < 6; n += 1) {
      now += 60;
      await claim(["a"], 5);
    }
    await store.settle({ worker, settlements: [settlement(first as never, "retried")] });
    expect(await claim(["a"], 1)).not.toContain(first?.id);
    claimer.putBack(null);
    const next = () => claim(["a"], 1);
    expect((await claimsUntil(first?.id as JobId, next)).claims).toBeLessThanOrEqual(3);
  });
});
