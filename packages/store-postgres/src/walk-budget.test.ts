import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WalkBudget } from "./walk-budget.ts";

describe("walks from the start", () => {
  it("that take next to no time are always allowed", () => {
    const budget = new WalkBudget({ freeMs: 5 });
    for (let n = 0; n < 10_000; n += 1) budget.spend(5, 0);
    expect(budget.allows(0)).toBe(true);
    expect(budget.isDear(5)).toBe(false);
  });

  it("that take longer are allowed until what was saved up is spent, and then after twenty times as long", () => {
    const budget = new WalkBudget({ share: 1 / 20, mostMs: 250 });
    for (let n = 0; n < 2; n += 1) budget.spend(200, 0);
    expect(budget.allows(0)).toBe(true);
    budget.spend(200, 0);
    expect([budget.allows(0), budget.allows(3_000), budget.allows(3_001)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it("are not saved up for without bound", () => {
    const budget = new WalkBudget({ share: 1 / 20, mostMs: 250 });
    for (let n = 0; n < 2; n += 1) budget.spend(250, 1e9);
    expect(budget.allows(1e9)).toBe(false);
  });

  it("are not owed without bound", () => {
    const budget = new WalkBudget({ share: 1 / 20, mostDebtMs: 1_000 });
    for (let n = 0; n < 100; n += 1) budget.spend(500, 0);
    expect([budget.allows(20_000), budget.allows(20_001)]).toEqual([false, true]);
  });

  it("cost what they take, as far as the last one took half of it or more", () => {
    const budget = new WalkBudget({ share: 1 / 40, mostMs: 30 });
    for (const walkMs of [8, 30]) budget.spend(walkMs, 0);
    expect(budget.allows(0)).toBe(true);
    for (const walkMs of [8, 30]) budget.spend(walkMs, 0);
    expect([budget.allows(400), budget.allows(401)]).toEqual([false, true]);
  });

  it("cost twice the last one at most: a server that once stood still says nothing of the next", () => {
    const budget = new WalkBudget();
    for (const walkMs of [3, 60_000, 3]) budget.spend(walkMs, 0);
    expect(budget.allows(0)).toBe(true);
  });

  it("cost as much when cheap ones come between them", () => {
    const budget = new WalkBudget();
    for (let n = 0; n < 3; n += 1) for (const walkMs of [200, 1]) budget.spend(walkMs, 0);
    expect(budget.allows(0)).toBe(false);
  });

  it("take no more than their share and what was saved up, but for the last of them", () => {
    const step = fc.record({ waitMs: fc.nat(500), walkMs: fc.integer({ min: 6, max: 400 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const budget = new WalkBudget({ share: 1 / 20, mostMs: 250, freeMs: 5 });
        let now = 0;
        let spent = 0;
        let before = 0;
        for (const { waitMs, walkMs } of steps) {
          now += waitMs;
          if (!budget.allows(now)) continue;
          expect(spent).toBeLessThanOrEqual(250 + now / 20 + 1e-6);
          budget.spend(walkMs, now);
          spent += Math.min(walkMs, 2 * before);
          before = walkMs;
        }
      }),
    );
  });
});
