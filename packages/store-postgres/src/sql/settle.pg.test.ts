import type { JobId, Settlement, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
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
const store = new PostgresStore({ pool });
const clock = await stopSqlClock(pool);
const kinds = ["a"];
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store, { name: "w" });
});
afterEach(() => expectInvariants(pool));

const claimed = <N extends number>(count: N) => claimNew(store, worker, "a", count);
const claimedOne = async () => (await claimed(1))[0];

const settle = async (...settlements: readonly Settlement[]) =>
  (await store.settle({ worker, settlements })).verdicts;

const jobOf = async (id: JobId) => (await store.findJob({ id })).job;
const journalOf = async (jobId: JobId) => (await store.readJournal({ jobId })).entries;

describe("a run that completed", () => {
  it("ends its job, and leaves one entry that says how", async () => {
    const each = await claimedOne();
    await clock.advance(1_500);
    const changes = { note: "42 rows", attachment: '{"rows": 42}' };
    expect(await settle(settlement(each, "completed", changes))).toEqual(["applied"]);
    const now = new Date(await clock.now());
    expect(await jobOf(each.id)).toMatchObject({
      status: "completed",
      runCount: 1,
      failureCount: 0,
      carry: null,
      visibleAt: null,
      finishedAt: now,
      claimedBy: null,
    });
    expect(await journalOf(each.id)).toEqual([
      {
        jobId: each.id,
        kind: "a",
        runNo: 1,
        outcome: "completed",
        note: "42 rows",
        attachment: { rows: 42 },
        detail: null,
        worker: "w",
        startedAt: new Date(now.getTime() - 1_500),
        recordedAt: now,
      },
    ]);
  });

  it("with nothing to tell ends its job with the same entry", async () => {
    const each = await claimedOne();
    await clock.advance(1_500);
    expect(await settle(settlement(each))).toEqual(["applied"]);
    const now = new Date(await clock.now());
    const startedAt = new Date(now.getTime() - 1_500);
    const said = { note: null, attachment: null, detail: null, worker: "w" };
    const entry = { jobId: each.id, kind: "a", runNo: 1, outcome: "completed", ...said };
    expect(await journalOf(each.id)).toEqual([{ ...entry, startedAt, recordedAt: now }]);
  });
});

describe("a run that paused", () => {
  it("leaves its job pending, due after the delay, with its carry, and counts no failure", async () => {
    const each = await claimedOne();
    const changes = { delayMs: 60_000, carry: '{"page": 2}', note: "page 1" };
    expect(await settle(settlement(each, "paused", changes))).toEqual(["applied"]);
    expect(await jobOf(each.id)).toMatchObject({
      status: "pending",
      runCount: 1,
      failureCount: 0,
      carry: { page: 2 },
      visibleAt: new Date((await clock.now()) + 60_000),
      claimedBy: null,
      leaseExpiresAt: null,
    });
    expect(await journalOf(each.id)).toMatchObject([{ outcome: "paused", note: "page 1" }]);
  });

  it("can name the moment; one that has passed is now", async () => {
    const [one, two] = await claimed(2);
    const now = await clock.now();
    await settle(
      settlement(one, "paused", { runAt: now + 12_345 }),
      settlement(two, "paused", { runAt: 5 }),
    );
    expect((await jobOf(one.id))?.visibleAt).toEqual(new Date(now + 12_345));
    expect((await jobOf(two.id))?.visibleAt).toEqual(new Date(now));
  });

  it.each([1e14, 1e15, 8.64e15, Number.MAX_SAFE_INTEGER])(
    "for %d ms is due at the far date, which comes back as it was stored",
    async (delayMs) => {
      const [one, two] = await claimed(2);
      await settle(
        settlement(one, "paused", { delayMs: delayMs * 10 }),
        settlement(two, "paused", { runAt: 253_370_764_800_000 }),
      );
      for (const { id } of [one, two])
        expect((await jobOf(id))?.visibleAt).toEqual(new Date("9999-01-01T00:00:00.000Z"));
    },
  );

  it("for no time keeps its place in the order", async () => {
    const each = await claimedOne();
    const [later] = await enqueue(store, job("a"));
    await settle(settlement(each, "paused"));
    const { jobs } = await store.claim(claimRequest(worker, kinds));
    expect(jobs.map(({ id }) => id)).toEqual([each.id, later]);
  });

  it("keeps the stored carry where it names none; a carry of null is one", async () => {
    const carries: (string | null)[] = [];
    await enqueue(store, job("a"));
    for (const carry of ['{"page": 2}', null, "null", null, "[1]"]) {
      const { jobs } = await store.claim(claimRequest(worker, kinds));
      carries.push(...jobs.map((each) => each.carry));
      await settle(...jobs.map((each) => settlement(each, "paused", { carry })));
    }
    expect(carries).toEqual([null, '{"page": 2}', '{"page": 2}', "null", "null"]);
  });
});

describe("a run that is to be retried", () => {
  it("counts as a failure, with what went wrong in its entry", async () => {
    const each = await claimedOne();
    const detail = '{"name": "TypeError", "code": "E_X"}';
    const changes = { delayMs: 877, note: "no luck", detail, carry: "7" };
    expect(await settle(settlement(each, "retried", changes))).toEqual(["applied"]);
    expect(await jobOf(each.id)).toMatchObject({
      status: "pending",
      failureCount: 1,
      carry: 7,
      visibleAt: new Date((await clock.now()) + 877),
    });
    expect(await journalOf(each.id)).toMatchObject([
      { outcome: "retried", note: "no luck", detail: { name: "TypeError", code: "E_X" } },
    ]);
  });
});

describe("a run that ends its job for good", () => {
  it("keeps all of it among the dead, the carry as it was stored", async () => {
    await enqueue(store, job("a", { dedupKey: "k", priority: "low", leaseMs: 5_000 }));
    for (const [outcome, carry] of [["paused", '{"page": 2}'] as const, ["dead", null] as const]) {
      const { jobs } = await store.claim(claimRequest(worker, kinds));
      await settle(...jobs.map((each) => settlement(each, outcome, { carry, note: "broken" })));
    }
    const { rows } = await pool.query(
      "select run_count, failure_count, priority, dedup_key, carry, lease_ms from venturi_dead",
    );
    expect(rows).toEqual([
      {
        run_count: 2,
        failure_count: 1,
        priority: 2,
        dedup_key: "k",
        carry: { page: 2 },
        lease_ms: 5_000,
      },
    ]);
    const { jobs } = await store.queryJobs({
      statuses: ["dead"],
      kinds: null,
      ids: null,
      finishedSince: null,
      finishedUntil: null,
      limit: 10,
      before: null,
    });
    expect(jobs).toMatchObject([
      {
        status: "dead",
        carry: { page: 2 },
        failureCount: 1,
        finishedAt: new Date(await clock.now()),
      },
    ]);
  });
});

describe("a run that is released", () => {
  it("leaves its job due now, in its place, with what was stored before", async () => {
    const each = await claimedOne();
    const [later] = await enqueue(store, job("a"));
    await clock.advance(5_000);
    expect(await settle(settlement(each, "released", { note: "stopping" }))).toEqual(["applied"]);
    expect(await jobOf(each.id)).toMatchObject({
      status: "pending",
      runCount: 1,
      failureCount: 0,
      carry: null,
      visibleAt: new Date(await clock.now()),
    });
    const { jobs } = await store.claim(claimRequest(worker, kinds));
    expect(jobs.map(({ id }) => id)).toEqual([each.id, later]);
  });
});
