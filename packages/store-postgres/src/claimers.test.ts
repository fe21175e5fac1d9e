import { describe, expect, it } from "vitest";
import { Claimers } from "./claimers.ts";
import type { OldPlace } from "./old-place.ts";

const minuteMs = 60_000;
const place: OldPlace = { kindId: 1, tier: 0, seq: 7 };

function setUp() {
  const clock = { now: 0 };
  let made = 0;
  /** The claimers that were told of the last row that was put back, by when they were made. */
  const told: number[] = [];
  const claimers = new Claimers(
    () => {
      made += 1;
      const name = made;
      return { name, putBack: () => told.push(name) };
    },
    () => clock.now,
  );
  const putBack = () => {
    told.length = 0;
    claimers.putBack(place);
    return [...told];
  };
  return { clock, claimers, putBack };
}

describe("a session's claimer", () => {
  it("is its own, and kept", () => {
    const { claimers, putBack } = setUp();
    expect([1, 2, 1, 2].map((worker) => claimers.of(worker).name)).toEqual([1, 2, 1, 2]);
    expect(putBack()).toEqual([1, 2]);
  });

  it("goes with its session", () => {
    const { claimers, putBack } = setUp();
    claimers.of(1);
    claimers.drop(1);
    expect(putBack()).toEqual([]);
    expect(claimers.of(1).name).toBe(2);
  });

  it("is dropped once it has not been used for ten minutes and another is made", () => {
    const { clock, claimers, putBack } = setUp();
    for (const worker of [1, 2]) claimers.of(worker);
    clock.now = 5 * minuteMs;
    claimers.of(2);
    clock.now = 11 * minuteMs;
    expect(putBack()).toEqual([1, 2]);
    claimers.of(3);
    expect(putBack()).toEqual([2, 3]);
    expect(claimers.of(1).name).toBe(4);
  });
});
