import { describe, expect, it } from "vitest";
import { FAR_FUTURE_MS, type Instant } from "./duration.ts";
import { isOutcome, Outcome } from "./outcome.ts";

describe("an outcome", () => {
  it("is completed, with or without a note", () => {
    expect(Outcome.completed()).toMatchObject({ type: "completed", note: null });
    expect(Outcome.completed("3 rows")).toMatchObject({ type: "completed", note: "3 rows" });
  });

  it("is a pause for a duration", () => {
    expect(Outcome.pauseFor("1.5s", "waiting")).toMatchObject({
      type: "paused",
      delayMs: 1500,
      runAt: null,
      note: "waiting",
    });
  });

  it("is a pause until a moment", () => {
    expect(Outcome.pauseUntil({ epochMilliseconds: 1234 })).toMatchObject({
      type: "paused",
      delayMs: 0,
      runAt: 1234,
      note: null,
    });
  });

  it.each([
    [-1, 0],
    [Number.MAX_SAFE_INTEGER, FAR_FUTURE_MS],
    [Number.POSITIVE_INFINITY, FAR_FUTURE_MS],
  ])("pauses for %d as for %d ms", (given, delayMs) => {
    expect(Outcome.pauseFor(given)).toMatchObject({ delayMs });
  });

  it("refuses what is no time, at once", () => {
    const invalid = expect.objectContaining({ code: "invalid-argument" });
    expect(() => Outcome.pauseFor(Number.NaN)).toThrow(invalid);
    expect(() => Outcome.pauseFor("soon" as "1s")).toThrow(invalid);
    expect(() => Outcome.pauseUntil(new Date(Number.NaN))).toThrow(invalid);
    expect(() => Outcome.pauseUntil("2030-01-01" as unknown as Instant)).toThrow(invalid);
  });

  it("keeps a note that the database can store", () => {
    expect(Outcome.completed("a\u0000b\ud800").note).toBe("a\ufffdb\ufffd");
    expect(Outcome.completed("x".repeat(5000)).note).toHaveLength(4096);
    expect(() => Outcome.completed(5 as unknown as string)).toThrow(/note is not text/);
  });

  it("cannot be changed", () => {
    expect(Object.isFrozen(Outcome.completed())).toBe(true);
    expect(Object.isFrozen(Outcome.pauseFor(0))).toBe(true);
  });

  it("is recognised by its brand, also from another copy of the package", () => {
    expect(isOutcome(Outcome.completed())).toBe(true);
    expect(isOutcome({ [Symbol.for("venturi.outcome")]: true, type: "completed" })).toBe(true);
    expect(isOutcome({ type: "completed", note: null })).toBe(false);
    expect([undefined, null, 5, "completed", {}].some(isOutcome)).toBe(false);
  });
});
