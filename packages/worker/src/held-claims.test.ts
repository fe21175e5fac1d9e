import { beforeEach, describe, expect, test } from "vitest";
import { HeldClaims } from "./held-claims.ts";

let held: HeldClaims;

const claimOf = (runCount: number, leaseEndsMs: number) => {
  return { id: "a", jobId: "a", runCount, leaseExpiresAt: new Date(leaseEndsMs) };
};

beforeEach(() => {
  held = new HeldClaims();
});

describe("two claims of one job under one run count", () => {
  const first = claimOf(1, 1_000);
  const second = claimOf(1, 1_700);

  test("the end of the first one's hand-back leaves the second", () => {
    held.add(first);
    held.undo(first);
    held.add(second);
    held.removeUndone(first);
    expect(held.knows(second)).toBe(true);
    expect(held.jobIds()).toEqual(["a"]);
    held.undo(second);
    held.removeUndone(second);
    expect(held.jobIds()).toEqual([]);
  });

  test("while the first is being handed back the second, of which nobody was told, is unknown", () => {
    held.add(first);
    held.undo(first);
    expect(held.knows(claimOf(1, 1_001))).toBe(true);
    expect(held.knows(second)).toBe(false);
  });
});

test("a claim whose lease was extended by a statement that nobody answered is known", () => {
  held.add(claimOf(1, 1_000));
  expect(held.knows(claimOf(1, 600_000))).toBe(true);
});

test("a hand-back that begins late leaves a newer claim", () => {
  held.add(claimOf(1, 1_000));
  held.add(claimOf(2, 5_000));
  held.undo(claimOf(1, 1_000));
  held.removeUndone(claimOf(1, 1_000));
  expect(held.knows(claimOf(2, 5_000))).toBe(true);
});

test("of two claims the one with more runs counts, also where its lease is shorter", () => {
  const first = claimOf(1, 900_000);
  const second = claimOf(2, 5_000);
  held.add(first);
  held.add(second);
  held.undo(first);
  expect(held.knows(second)).toBe(true);
  expect(held.knows(first)).toBe(false);
});

test("the end of a run leaves a newer claim", () => {
  held.add(claimOf(2, 5_000));
  held.remove("a", 1);
  expect(held.size).toBe(1);
  held.remove("a", 2);
  expect(held.size).toBe(0);
});

test("a claim is known also where only its claiming said when its lease ends", () => {
  held.undo(claimOf(1, 5_000));
  expect(held.knows({ jobId: "a", runCount: 1 })).toBe(true);
  held.removeUndone({ jobId: "a", runCount: 1 });
  expect(held.size).toBe(0);
});

test("a store that does not say when leases end is taken at its run counts", () => {
  const claim = { jobId: "a", runCount: 1 };
  held.undo(claim);
  expect(held.knows(claim)).toBe(true);
  held.removeUndone({ ...claim, runCount: 0 });
  expect(held.size).toBe(1);
  held.removeUndone(claim);
  expect(held.size).toBe(0);
});
