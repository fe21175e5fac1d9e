import type { FindStaleRequest, JobId, StaleClaim } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import type { UnstartedClaim } from "./hand-back.ts";
import { HeldClaims } from "./held-claims.ts";
import { stillHeld, undoUnknownClaims } from "./listed-claims.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { idOf, staleClaim } from "./testing/stale-claims.ts";

const worker = 7;

const clock = new ManualClock();

let listed: StaleClaim[];
let held: HeldClaims;
let here: Set<JobId>;
let handedBack: UnstartedClaim[];

beforeEach(() => {
  listed = [];
  held = new HeldClaims();
  here = new Set();
  handedBack = [];
});

const store = {
  findStale: async ({ holders, orphans, limit }: FindStaleRequest) => {
    // All of this worker's, whose leases have not ended, and nobody else's.
    expect({ holders, orphans }).toEqual({
      holders: [{ worker, overdueOnly: false }],
      orphans: false,
    });
    return { claims: listed.slice(0, limit) };
  },
};
const claimOf = (name: string, leaseEndsMs = 1_000, runCount = 1) =>
  staleClaim(name, worker, { runCount, leaseExpiresAt: new Date(leaseEndsMs) });

const look = () =>
  undoUnknownClaims({
    store,
    worker,
    clock,
    isKnown: (claim) => held.knows(claim),
    isHere: (jobId) => here.has(jobId),
    leaseMsOf: () => 60_000,
    handBack: (claim) => {
      held.undo(claim);
      handedBack.push(claim);
    },
  });

/** A claimed job as the worker got it. */
const jobOf = (name: string) => ({ id: idOf(name), runCount: 1, leaseExpiresAt: new Date(0) });

describe("claims that nobody was told of", () => {
  test("are handed back, those that are held are not", async () => {
    listed = [claimOf("a"), claimOf("b")];
    held.add(jobOf("a"));
    expect(await look()).toBe(true);
    expect(handedBack).toMatchObject([{ jobId: idOf("b"), runCount: 1, kind: null }]);
  });

  test("are handed back until recovery takes over: within the lease of their kind", async () => {
    listed = [claimOf("a")];
    await look();
    expect(handedBack[0]?.leaseEndsAt).toBe(clock.now() + 60_000);
  });

  test("are found however many there are", async () => {
    listed = Array.from({ length: 2_500 }, (_, n) => claimOf(`${n}`));
    expect(await look()).toBe(true);
    expect(handedBack).toHaveLength(2_500);
  });

  test("of a job that runs or waits here are left alone, to be looked for again", async () => {
    listed = [claimOf("a"), claimOf("b")];
    here = new Set([idOf("a")]);
    expect(await look()).toBe(false);
    expect(handedBack.map(({ jobId }) => jobId)).toEqual([idOf("b")]);
    here.clear();
    expect(await look()).toBe(true);
    expect(handedBack).toHaveLength(2);
  });

  test("are told from an earlier one of the same run count that is still being handed back", async () => {
    held.undo(claimOf("a", 1_000));
    listed = [claimOf("a", 9_000)];
    await look();
    expect(handedBack).toHaveLength(1);
  });
});

describe("claims that could not be recovered", () => {
  test("are held as long as the store lists them, under their run count", async () => {
    listed = [claimOf("a"), claimOf("b", 1_000, 2)];
    const claims = ["a", "b", "c"].map((name) => claimOf(name));
    expect(await stillHeld({ store, worker, held: 3 }, claims)).toEqual([claims[0]]);
  });

  test("are taken for held where the list is cut off", async () => {
    listed = Array.from({ length: 1_003 }, (_, n) => claimOf(`${n}`));
    const claims = [claimOf("gone")];
    expect(await stillHeld({ store, worker, held: 3 }, claims)).toEqual(claims);
  });
});
