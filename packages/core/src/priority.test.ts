import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isPriority,
  priorities,
  priorityFloor,
  priorityOfTier,
  priorityTier,
  toPriority,
} from "./priority.ts";

describe("the floor of a turn", () => {
  const floors = (ratio: number | null, turns: number) =>
    Array.from({ length: turns }, (_, turn) => priorityFloor(turn + 1, ratio)).join(" ");

  it("follows the ratio", () => {
    expect(floors(2, 4)).toBe("0 1 0 2");
    expect(floors(3, 9)).toBe("0 0 1 0 0 1 0 0 2");
    expect(floors(4, 16)).toBe("0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 2");
  });

  it("is 0 under strict priority: a ratio of null, or below 2", () => {
    expect(floors(null, 4)).toBe("0 0 0 0");
    expect(priorityFloor(4, 1)).toBe(0);
    expect(priorityFloor(4, 0)).toBe(0);
  });

  it("would be 2 for a counter of 0, which no turn has", () => {
    expect(priorityFloor(0, 4)).toBe(2);
  });

  it("reaches every tier within ratio² turns, wherever they start", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 7 }), fc.nat(9999), (ratio, start) => {
        const seen = new Set<number>();
        for (let turn = 0; turn < ratio * ratio; turn += 1) {
          seen.add(priorityFloor(start + turn, ratio));
        }
        expect([...seen].sort()).toEqual([0, 1, 2]);
      }),
    );
  });
});

describe("priorities", () => {
  it("have the tiers 0, 1 and 2", () => {
    expect(priorities.map(priorityTier)).toEqual([0, 1, 2]);
    expect([0, 1, 2].map(priorityOfTier)).toEqual(["high", "normal", "low"]);
  });

  it.each([[3], [-1], [0.5], [Number.NaN]])("know no tier %s", (tier) => {
    expect(() => priorityOfTier(tier)).toThrow(/not a priority tier/);
  });

  it("are three words and nothing else", () => {
    expect(["high", "normal", "low"].every(isPriority)).toBe(true);
    expect(["High", "", 1, null, undefined].some(isPriority)).toBe(false);
    expect(toPriority("low", "priority")).toBe("low");
    expect(() => toPriority("urgent", "priority")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "priority" }),
    );
  });
});
