import type { Priority } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { claimRequest, enqueue, job, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

const ratio = 4;
/** What sixteen turns take of an endless supply, from the first one on. */
const sixteenTurns = "HHHNHHHNHHHNHHHL";
const letters: Readonly<Record<Priority, string>> = { high: "H", normal: "N", low: "L" };

beforeEach(() => removeJobs(pool));
afterEach(() => expectInvariants(pool));

/** The tiers that a claim's turns bring, first by priority as a claim returns them. */
function expectedTiers(counter: number, size: number): string {
  const turns = Array.from({ length: size }, (_, turn) => sixteenTurns[(counter + turn) % 16]);
  return turns.sort((a, b) => "HNL".indexOf(a ?? "") - "HNL".indexOf(b ?? "")).join("");
}

describe("an endless supply in all three tiers, at ratio 4", () => {
  const claims = 10_000;
  const refillAt = 1_000;

  async function refill(): Promise<void> {
    for (const tier of [0, 1, 2] as const)
      await addBacklog(pool, { kind: "supply", count: 1_100, tier });
  }

  it.each([
    ["one", 1],
    ["seven", 7],
    ["sixteen", 16],
    ["fifty", 50],
  ])(
    "is shared 12 : 3 : 1 over 10,000 jobs, exactly and in every claim, when claimed by %s",
    async (_, batch) => {
      const worker = await startWorker(store);
      const taken = { high: 0, normal: 0, low: 0 };
      let supplied = 0;
      for (let counter = 0; counter < claims; ) {
        // A refill outlasts its claims in each tier: no tier is ever empty.
        for (; supplied < counter + batch; supplied += refillAt) await refill();
        const limit = Math.min(batch, claims - counter);
        const turn = { counter, ratio };
        const { jobs } = await store.claim(claimRequest(worker, ["supply"], { limit, turn }));
        const tiers = jobs.map(({ priority }) => letters[priority]).join("");
        if (tiers !== expectedTiers(counter, limit))
          expect.fail(`turns ${counter + 1} to ${counter + limit} took ${tiers}`);
        for (const { priority } of jobs) taken[priority] += 1;
        counter += jobs.length;
      }
      expect(taken).toEqual({ high: 7_500, normal: 1_875, low: 625 });
    },
    60_000,
  );
});

describe("among an endless supply of High, at ratio 4", () => {
  /** The numbers of jobs, the job itself included, after which the one Normal and the one Low were claimed. */
  async function waits(start: number, batch: number): Promise<{ normal: number; low: number }> {
    await removeJobs(pool);
    await addBacklog(pool, { kind: "flood", count: 100, tier: 0 });
    await enqueue(store, job("flood", { priority: "normal" }), job("flood", { priority: "low" }));
    const worker = await startWorker(store);
    const had = { high: 0, normal: 0, low: 0 };
    for (let taken = 0; taken < 32; ) {
      const turn = { counter: start + taken, ratio };
      const { jobs } = await store.claim(claimRequest(worker, ["flood"], { limit: batch, turn }));
      taken += jobs.length;
      for (const { priority } of jobs) had[priority] = taken;
    }
    expect(had.high).toBe(32);
    return had;
  }

  it.each([1, 2, 4])(
    "one Normal that waits is had within 4 jobs and one Low within 16, claimed %i at a time",
    async (batch) => {
      const { normal, low } = await waits(0, batch);
      expect(normal).toBe(4);
      // The Normal is gone by the eighth turn, which is the Low's then.
      expect(low).toBe(8);
    },
  );

  it("a claim of sixteen holds both", async () => {
    expect(await waits(0, 16)).toMatchObject({ normal: 16, low: 16 });
  });

  it("wherever the rotation stands, the Normal waits for its next turn and the Low for no more than 16 jobs", async () => {
    for (let start = 0; start < 16; start += 1) {
      const { normal, low } = await waits(start, 1);
      // Every fourth turn is the Normal's, but for the sixteenth, which is the Low's.
      expect(normal).toBe(start < 12 ? 4 - (start % 4) : 20 - start);
      expect(low).toBeLessThanOrEqual(16);
    }
  });
});
