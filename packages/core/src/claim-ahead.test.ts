import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planAhead } from "./claim-ahead.ts";

describe("how far is claimed ahead", () => {
  it("is what is finished in 25 ms", () => {
    // 16 slots, handlers of 2 ms: 8 jobs a millisecond.
    expect(planAhead({ finished: 400, tookMs: 800, busyMs: 50, concurrency: 16 })).toBe(200);
  });

  it("is nothing before anything has ended", () => {
    expect(planAhead({ finished: 0, tookMs: 0, busyMs: 50, concurrency: 16 })).toBe(0);
  });

  it("is nothing where handlers take longer than 25 ms, also where many end at once", () => {
    const ended = { finished: 100, tookMs: 100_000, busyMs: 5, concurrency: 100 };
    expect(planAhead(ended)).toBe(0);
  });

  it("is nothing where fewer end in 25 ms than there are slots", () => {
    expect(planAhead({ finished: 10, tookMs: 100, busyMs: 50, concurrency: 8 })).toBe(0);
    expect(planAhead({ finished: 16, tookMs: 160, busyMs: 50, concurrency: 8 })).toBe(8);
  });

  it("is at most 4,000", () => {
    expect(planAhead({ finished: 4_000, tookMs: 0, busyMs: 0, concurrency: 1 })).toBe(4_000);
  });

  it("is a whole number from 0 to 4,000, whatever was observed", () => {
    const time = fc.double({ min: 0, max: 1e9, noNaN: true });
    const observed = fc.record({
      finished: fc.nat(),
      tookMs: time,
      busyMs: time,
      concurrency: fc.integer({ min: 1, max: 10_000 }),
    });
    fc.assert(
      fc.property(observed, (work) => {
        const ahead = planAhead(work);
        expect(Number.isInteger(ahead) && ahead >= 0 && ahead <= 4_000).toBe(true);
      }),
    );
  });
});
