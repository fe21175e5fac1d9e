import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jitterFactor, mix64, mixJobId, unitSample } from "./jitter.ts";
import { fromUuid } from "./job-id.ts";
import { VECTORS } from "./testing/backoff-vectors.ts";

const anyJobId = fc.uuid({ version: [1, 2, 3, 4, 5, 6, 7, 8] }).map(fromUuid);

describe("the mixing of ids", () => {
  it("is SplitMix64", () => {
    expect(mix64(0n)).toBe(0xe220a8397b1dcdafn);
    expect(mix64(1n)).toBe(0x910a2dec89025cc1n);
  });

  it.each(VECTORS)("of $id, attempt $attempt, is $mixed", ({ id, attempt, mixed, unit }) => {
    expect(mixJobId(id, attempt)).toBe(BigInt(mixed));
    expect(unitSample(id, attempt)).toBe(unit);
  });

  it("gives samples of at least 0 and below 1, nearly always another one for the next attempt", () => {
    let repeated = 0;
    const runs = 10_000;
    fc.assert(
      fc.property(anyJobId, fc.nat(200), (id, attempt) => {
        const sample = unitSample(id, attempt);
        if (sample === unitSample(id, attempt + 1)) repeated += 1;
        return sample >= 0 && sample < 1;
      }),
      { numRuns: runs },
    );
    expect(repeated).toBeLessThan(runs / 1000);
  });
});

describe("the jitter factor", () => {
  it("lies between 1 − fraction and 1", () => {
    expect(jitterFactor(0.5, 0)).toBe(0.5);
    expect(jitterFactor(0.5, 0.5)).toBe(0.75);
    expect(jitterFactor(0, 0.3)).toBe(1);
    expect(jitterFactor(1, 0.3)).toBeCloseTo(0.3);
  });

  it("clamps the fraction to 0 … 1", () => {
    expect(jitterFactor(-1, 0.25)).toBe(1);
    expect(jitterFactor(2, 0.25)).toBe(0.25);
  });

  it("refuses NaN", () => {
    expect(() => jitterFactor(Number.NaN, 0.5)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "jitterFraction" }),
    );
  });
});
