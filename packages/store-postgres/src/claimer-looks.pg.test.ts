import { type ClaimedJob, type ClaimRequest, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Claimer } from "./claimer.ts";
import type { OldPlace } from "./old-place.ts";
import type { PgPoolLike, PgQuery } from "./pg-like.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, kindId, removeJobs } from "./testing/backlog.ts";
import { claimerOn } from "./testing/claimer-on.ts";
import { Explainer } from "./testing/explainer.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import {
  claimKind,
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
} from "./testing/store-fixture.ts";
import { WalkBudget } from "./walk-budget.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool });
const worker = 4711;
/** Which parameter of a claim holds the marks of the jobs of normal priority. */
const normalMarks = 9;
/** In which the budget fills up again, in milliseconds, whatever a look took. */
const longMs = 1e12;

let now: number;
let claimer: Claimer;
/** What happens before the answer to the next claim arrives. */
let meanwhile: () => Promise<unknown>;

/** A claimer to whom every look from the start is dear, and the first one takes all of its budget. */
beforeEach(async () => {
  await addBacklog(pool, { kind: "a", count: 1 });
  await addBacklog(pool, { kind: "b", count: 1 });
  await removeJobs(pool);
  await pool.query("update venturi_kinds set paused_at = null");
  now = 0;
  meanwhile = () => Promise.resolve();
  const late: PgPoolLike = {
    ...recorder,
    query: async (query) => {
      const answer = await recorder.query(query);
      if (!verbOf(query).startsWith("claim")) return answer;
      const work = meanwhile;
      meanwhile = () => Promise.resolve();
      await work();
      return answer;
    },
  };
  const budget = new WalkBudget({ share: 1e-6, mostMs: 1e-6, freeMs: 0 });
  claimer = claimerOn(late, () => now, budget);
});

afterEach(() => expectInvariants(pool));

const claim = (changes: Partial<ClaimRequest> = {}) =>
  claimer.claim(claimRequest(worker, ["a", "b"], { limit: 5, ...changes }));

/** Claims that bring nothing, until the marks have reached what the last look has seen. */
async function pass(changes: Partial<ClaimRequest> = {}): Promise<void> {
  for (let n = 0; n < 3; n += 1) {
    now += 60;
    expect((await claim(changes)).jobs).toEqual([]);
  }
}

/** What claims bring while no time passes, of which each may look through one tier. */
async function claimOfEachTier(): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) for (const { id } of (await claim()).jobs) ids.push(id);
  return ids;
}

async function placeOf({ id }: ClaimedJob): Promise<OldPlace> {
  const { rows } = await pool.query(
    `select kind_id as "kindId", priority as tier, seq::float8 from venturi_queue where job_id = $1`,
    [toUuid(id)],
  );
  return rows[0];
}

describe("where looks from the start have become dear", () => {
  it("jobs that come are claimed behind all that was looked at, and the answer says that there may be more", async () => {
    expect(await claim()).toMatchObject({ jobs: [], blocked: false });
    await pass();
    await addBacklog(pool, { kind: "a", count: 2 });
    const queries = await recorder.queriesOf(async () => {
      expect(await claim()).toMatchObject({ jobs: [{}, {}], blocked: true });
    });
    expect(queries.map(verbOf)).toEqual(["claim"]);
    const marks = queries[0]?.values?.[normalMarks] as readonly number[];
    expect(Math.min(...marks)).toBeGreaterThan(0);
  });

  describe.each([
    ["ready", undefined],
    ["due", 0],
  ])("a job of a kind that had nothing, and that is %s,", (_, dueInMs) => {
    it.each([0, 1, 2] as const)("is claimed at once, of priority %i", async (tier) => {
      await claim();
      await pass();
      await addBacklog(pool, {
        kind: "b",
        count: 1,
        tier,
        ...(dueInMs === undefined ? {} : { dueInMs }),
      });
      expect((await claim()).jobs).toMatchObject([{ kind: "b" }]);
    });
  });

  it("claims look at fifty kinds together that had nothing", async () => {
    const kinds = Array.from({ length: 50 }, (_, index) => claimKind(`quiet${index}`));
    for (const { kind } of kinds) await kindId(pool, kind);
    claimer = claimerOn(recorder, () => now, new WalkBudget({ share: 0, mostMs: 0, freeMs: -1 }));
    await claim({ kinds });
    await pass({ kinds });
    const [query] = await recorder.queriesWithheld(() => claim({ kinds }));
    const explainer = await Explainer.open(pool);
    const { buffers } = await explainer.run(query as PgQuery);
    explainer.close();
    const { rows } = await pool.query(
      "select current_setting('server_version_num')::int4 as version",
    );
    // From version 17 on in one walk for each tier; before, the server descends for each kind and tier.
    expect(buffers).toBeLessThan(rows[0].version >= 170_000 ? 200 : 1_000);
  });

  it("an empty answer is a true one again after the next look, which their budget allows in time", async () => {
    await claim();
    await pass();
    expect(await claim()).toMatchObject({ jobs: [], blocked: true });
    now += longMs;
    expect(await claim()).toMatchObject({ jobs: [], blocked: false });
  });

  it("a job that is committed late waits for the next look", async () => {
    const other = await pool.connect();
    await other.query("begin");
    await other.query(
      `insert into venturi_jobs (id, created_at, kind_id, priority, payload)
        values ('00000000-0000-0000-0000-000000000001', now(), $1, 1, '{}')`,
      [await kindId(pool, "a")],
    );
    await other.query(
      `insert into venturi_queue (job_id, kind_id, priority, visible_at)
        values ('00000000-0000-0000-0000-000000000001', $1, 1, now())`,
      [await kindId(pool, "a")],
    );
    await claim();
    await pass();
    await other.query("commit");
    other.release();
    expect(await claim()).toMatchObject({ jobs: [], blocked: true });
    now += longMs;
    expect(await claim()).toMatchObject({ jobs: [{}], blocked: false });
  });
});

describe("a look that brought nothing does not put a mark behind", () => {
  it("jobs of a kind that was paused", async () => {
    await pool.query("update venturi_kinds set paused_at = now() where name = 'b'");
    await addBacklog(pool, { kind: "b", count: 1 });
    await claim();
    await pass();
    await pool.query("update venturi_kinds set paused_at = null");
    expect((await claim()).jobs).toHaveLength(1);
  });

  it("jobs that were excluded", async () => {
    const id = newId();
    await enqueue(store, job("a", { id }));
    await claim({ exclude: [id] });
    await pass({ exclude: [id] });
    expect(await claimOfEachTier()).toEqual([id]);
  });

  it("jobs for which their kind had no room", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    const kinds = [claimKind("a", { limit: 1 }), claimKind("b")];
    for (let n = 0; n < 3; n += 1) {
      now += 60;
      expect((await claim({ kinds })).jobs).toHaveLength(1);
    }
  });

  it("jobs that somebody had locked, for longer than until the next look", async () => {
    await addBacklog(pool, { kind: "a", count: 1 });
    const other = await pool.connect();
    await other.query("begin");
    await other.query("select 1 from venturi_queue for update");
    expect(await claim()).toMatchObject({ jobs: [], blocked: true });
    await pass();
    await other.query("rollback");
    other.release();
    now += 1_000;
    expect(await claimOfEachTier()).toHaveLength(1);
  });

  it("a job that was put back while it was under way", async () => {
    await addBacklog(pool, { kind: "a", count: 1 });
    // Claimed while looks took no time, so that there is no mark yet.
    const [claimed] = (await store.claim(claimRequest(worker, ["a"]))).jobs as [ClaimedJob];
    const place = await placeOf(claimed);
    meanwhile = async () => {
      await store.settle({ worker, settlements: [settlement(claimed, "retried")] });
      claimer.putBack(place);
    };
    expect((await claim()).jobs).toEqual([]);
    await pass({ exclude: [claimed.id] });
    expect(await claimOfEachTier()).toEqual([claimed.id]);
  });

  it("jobs that were scheduled, once they are due", async () => {
    await addBacklog(pool, { kind: "a", count: 1, dueInMs: 400 });
    const { waitMs } = await claim();
    await pass();
    await new Promise((resolve) => setTimeout(resolve, (waitMs ?? 0) + 5));
    now += 400;
    expect((await claim()).jobs).toHaveLength(1);
  });
});
