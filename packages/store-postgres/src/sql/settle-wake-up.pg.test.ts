import type { Settlement, SettlementOutcome, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import { claimNew, settlement, startWorker } from "../testing/store-fixture.ts";
import { countWakeUps } from "../testing/wake-ups.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const clock = await stopSqlClock(pool);
const wakeUps = await countWakeUps(pool);
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  await pool.query("delete from venturi_workers");
  worker = await startWorker(store, { name: "w" });
});
afterEach(() => expectInvariants(pool));
afterAll(() => wakeUps.close());

const claimed = <N extends number>(count: N) => claimNew(store, worker, "a", count);
const claimedOne = async () => (await claimed(1))[0];

const settle = async (...settlements: readonly Settlement[]) =>
  (await store.settle({ worker, settlements })).verdicts;

describe("workers are woken", () => {
  const sent = (outcome: SettlementOutcome, delayMs = 0) =>
    claimedOne().then((each) =>
      wakeUps.sentBy(() => settle(settlement(each, outcome, { delayMs, note: "x" }))),
    );

  it("once for what has become claimable, however many", async () => {
    expect(await sent("paused")).toBe(1);
    expect(await sent("retried")).toBe(1);
    expect(await sent("released")).toBe(1);
    const jobs = await claimed(5);
    const all = jobs.map((each) => settlement(each, "paused"));
    expect(await wakeUps.sentBy(() => settle(...all))).toBe(1);
  });

  it("for what will be due before a worker that sleeps looks again", async () => {
    await startWorker(store, { pollMaxMs: 60_000 });
    expect(await sent("paused", 59_000)).toBe(1);
    expect(await sent("retried", 61_000)).toBe(0);
  });

  it("also if they all look silent, as when the clock has just jumped, until they stop", async () => {
    const other = await startWorker(store, { pollMaxMs: 60_000, workerTimeoutMs: 1_000 });
    await clock.advance(7 * 86_400_000);
    expect(await sent("paused", 59_000)).toBe(1);
    await store.stopWorker({ worker: other });
    expect(await sent("paused", 59_000)).toBe(0);
  });

  it("not for what has completed, died or was lost", async () => {
    expect(await sent("completed")).toBe(0);
    expect(await sent("dead")).toBe(0);
    const each = await claimedOne();
    expect(await wakeUps.sentBy(() => settle(settlement(each)))).toBe(0);
    const again = settlement(each, "released");
    expect(await wakeUps.sentBy(() => settle(again))).toBe(0);
  });

  it("not when notifications are turned off", async () => {
    await store.configure({ notify: false });
    expect(await sent("paused")).toBe(0);
    await store.configure({ notify: true });
    expect(await sent("paused")).toBe(1);
  });
});
