import { describe, expect, it } from "vitest";
import { ManualClock } from "./manual-clock.ts";

describe("a manual clock", () => {
  it("stands still until it is moved", () => {
    const clock = new ManualClock(new Date(5_000));
    expect([clock.now(), clock.now()]).toEqual([5_000, 5_000]);
    expect(clock.advance("1.5s")).toBe(6_500);
    expect(clock.now()).toBe(6_500);
  });

  it("takes instants of any kind, earlier ones too", () => {
    const clock = new ManualClock({ epochMilliseconds: 10 });
    clock.set(new Date(3));
    expect(clock.now()).toBe(3);
  });

  it("refuses what is no duration or instant", () => {
    const clock = new ManualClock();
    expect(() => clock.advance(-1)).toThrow();
    expect(() => clock.set(new Date(Number.NaN))).toThrow();
    expect(() => new ManualClock(new Date(Number.NaN))).toThrow(/start/);
  });
});
