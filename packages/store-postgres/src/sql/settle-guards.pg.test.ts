import type { JobId, Settlement, SettlementOutcome, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { type RowLock, whileLocked } from "../testing/locks.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import {
  claimNew,
  claimRequest,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
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

describe("a settlement applies only while its run holds the claim", () => {
  const outcomes: readonly SettlementOutcome[] = [
    "completed",
    "paused",
    "retried",
    "dead",
    "released",
  ];

  it.each(outcomes)("%s: not for another worker", async (outcome) => {
    const each = await claimedOne();
    const other = await startWorker(store);
    const settlements = [settlement(each, outcome, { note: "x" })];
    expect(await store.settle({ worker: other, settlements })).toEqual({ verdicts: ["lost"] });
    expect(await jobOf(each.id)).toMatchObject({ status: "claimed", claimedBy: "w" });
    expect(await journalOf(each.id)).toEqual([]);
  });

  it.each(outcomes)(
    "%s: not for an earlier run of the same worker that ended otherwise",
    async (outcome) => {
      const first = await claimedOne();
      await settle(settlement(first, outcome === "paused" ? "released" : "paused"));
      await store.claim(claimRequest(worker, kinds));
      expect(await settle(settlement(first, outcome, { note: "x" }))).toEqual(["lost"]);
      expect(await jobOf(first.id)).toMatchObject({ status: "claimed", runCount: 2 });
      expect(await journalOf(first.id)).toHaveLength(1);
    },
  );

  it.each(outcomes)("%s: not for a job that nobody knows", async (outcome) => {
    const unknown = { id: newId(), runCount: 1 };
    expect(await settle(settlement(unknown, outcome, { note: "x" }))).toEqual(["lost"]);
  });

  it.each(outcomes)("%s: not a second time, and says that it is done", async (outcome) => {
    const each = await claimedOne();
    const same = settlement(each, outcome, { note: "x", delayMs: 5_000 });
    expect(await settle(same)).toEqual(["applied"]);
    expect(await settle(same)).toEqual(["done"]);
    expect(await journalOf(each.id)).toHaveLength(1);
  });

  it("and is done, too, after the job has gone on to further runs", async () => {
    const first = await claimedOne();
    await settle(settlement(first, "paused"));
    await store.claim(claimRequest(worker, kinds));
    expect(await settle(settlement(first, "paused"))).toEqual(["done"]);
    expect(await jobOf(first.id)).toMatchObject({ status: "claimed", runCount: 2 });
  });

  it("and is lost after somebody else's ending of the run", async () => {
    const each = await claimedOne();
    const other = await startWorker(store);
    await settle(settlement(each, "released"));
    const { jobs } = await store.claim(claimRequest(other, kinds));
    const settlements = jobs.map((again) => settlement(again));
    await store.settle({ worker: other, settlements });
    expect(await settle(settlement({ ...each, runCount: 2 }))).toEqual(["lost"]);
  });
});

describe("a row that another transaction has locked", () => {
  it.each(["completed", "paused", "dead"] as const)(
    "is busy, not waited for, and does not hold up the rest: %s",
    async (outcome) => {
      const [one, two, three] = await claimed(3);
      await whileLocked(pool, [two.id], async () => {
        const all = [one, two, three].map((each) => settlement(each, outcome));
        expect(await settle(...all)).toEqual(["applied", "busy", "applied"]);
      });
      expect(await settle(settlement(two, outcome))).toEqual(["applied"]);
    },
  );

  it.each<RowLock>(["for update", "for no key update", "for share", "for key share"])(
    "%s: and let go of, is settled as any other",
    async (lock) => {
      const [one, two, three] = await claimed(3);
      const nothing = async () => undefined;
      await whileLocked(pool, [one.id, two.id], nothing, { lock, end: "rollback" });
      await whileLocked(pool, [two.id], nothing, { lock, end: "commit" });
      const all = [one, two, three].map((each) => settlement(each));
      expect(await settle(...all)).toEqual(["applied", "applied", "applied"]);
    },
  );

  it("by several at once, who have all let go, is settled as any other", async () => {
    const each = await claimedOne();
    const lock = "for share";
    const nothing = async () => undefined;
    await whileLocked(pool, [each.id], () => whileLocked(pool, [each.id], nothing, { lock }), {
      lock,
    });
    expect(await settle(settlement(each))).toEqual(["applied"]);
  });

  it("by an attempt to settle it that failed, is settled by the next", async () => {
    const each = await claimedOne();
    const client = await pool.connect();
    await client.query("begin");
    const within = new PostgresStore({ pool: recordingPool(client) });
    await within.settle({ worker, settlements: [settlement(each)] });
    await client.query("rollback");
    client.release();
    expect(await jobOf(each.id)).toMatchObject({ status: "claimed" });
    expect(await settle(settlement(each))).toEqual(["applied"]);
  });
});
