import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backoff, isBackoff, retryDelay, retryDelayNs, retryMultiplier } from "./backoff.ts";
import { isVenturiError } from "./errors.ts";
import { fromUuid } from "./job-id.ts";
import { VECTORS } from "./testing/backoff-vectors.ts";

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const anyJobId = fc
  .tuple(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }))
  .map(([bits]) => bits.toString(16).padStart(32, "0"))
  .map(
    (h) =>
      `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`,
  )
  .map(fromUuid);

describe("a Backoff", () => {
  it("is 500 ms up to 2 minutes by default", () => {
    expect(new Backoff()).toEqual({ baseMs: 500, capMs: 120_000 });
  });

  it("has a base of at least 1 ms", () => {
    expect(new Backoff({ base: 0, cap: "10s" })).toEqual({ baseMs: 1, capMs: 10_000 });
    expect(new Backoff({ base: "0.5ms" }).baseMs).toBe(1);
  });

  it("has a cap of at least its base", () => {
    expect(new Backoff({ base: "5s", cap: "1s" })).toEqual({ baseMs: 5000, capMs: 5000 });
    expect(new Backoff({ base: 0, cap: 0 })).toEqual({ baseMs: 1, capMs: 1 });
  });

  it.each([
    ["base", { base: Number.NaN }],
    ["base", { base: -1 }],
    ["cap", { cap: "5 parsecs" }],
    ["cap", { cap: null }],
    ["factor", { factor: 2 }],
  ])("refuses a bad %s", (name, options) => {
    expect(() => new Backoff(options as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: `backoff.${name}` }),
    );
  });

  it.each([5, "1s", null, []])("refuses what is no object: %j", (options) => {
    expect(() => new Backoff(options as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "backoff" }),
    );
  });

  it("is recognised by its brand, not by its shape", () => {
    expect(isBackoff(new Backoff())).toBe(true);
    expect(isBackoff({ baseMs: 1, capMs: 1 })).toBe(false);
    expect(isBackoff(undefined)).toBe(false);
  });
});

describe("the multiplier", () => {
  it("is fibonacci(attempt) − 1", () => {
    const first = Array.from({ length: 20 }, (_, index) => Number(retryMultiplier(index + 1)));
    expect(first).toEqual([
      0, 0, 1, 2, 4, 7, 12, 20, 33, 54, 88, 143, 232, 376, 609, 986, 1596, 2583, 4180, 6764,
    ]);
    expect(retryMultiplier(0)).toBe(0n);
  });

  it("saturates from attempt 94 on", () => {
    expect(retryMultiplier(93)).toBe(12200160415121876737n);
    expect(retryMultiplier(94)).toBe(18446744073709551614n);
    expect(retryMultiplier(100)).toBe(18446744073709551614n);
    expect(retryMultiplier(2 ** 53 - 1)).toBe(18446744073709551614n);
  });
});

describe("the delay before a retry", () => {
  const policies = [
    { column: "a", backoff: new Backoff(), fraction: 0.5 },
    { column: "b", backoff: new Backoff({ base: "1s", cap: "300s" }), fraction: 0.5 },
    { column: "c", backoff: new Backoff(), fraction: 1 },
  ] as const;

  it.each(VECTORS)("of $id, attempt $attempt, matches the reference", (vector) => {
    for (const { column, backoff, fraction } of policies) {
      const ns = vector[column];
      expect(retryDelayNs(backoff, fraction, vector.attempt, vector.id)).toBe(ns);
      expect(retryDelay(backoff, fraction, vector.attempt, vector.id)).toBe(Math.floor(ns / 1e6));
    }
  });

  it("is nothing for the first two attempts", () => {
    const backoff = new Backoff({ base: "1s", cap: "300s" });
    expect([0, 1, 2].map((attempt) => retryDelay(backoff, 0.5, attempt, id))).toEqual([0, 0, 0]);
  });

  it("is nothing where its base is nothing, whatever the jitter and the job", () => {
    fc.assert(
      fc.property(
        anyJobId,
        fc.nat(2),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (jobId, attempt, fraction) => {
          expect(retryDelayNs(new Backoff({ base: "1d" }), fraction, attempt, jobId)).toBe(0);
        },
      ),
    );
  });

  it("lies between half its base and all of it for attempts 3 … 20 with a jitter of one half", () => {
    const backoff = new Backoff({ base: "1s", cap: "300s" });
    for (let attempt = 3; attempt <= 20; attempt += 1) {
      const base = Math.min(Number(retryMultiplier(attempt)), 300) * 1e9;
      const ns = retryDelayNs(backoff, 0.5, attempt, id);
      expect(ns).toBeGreaterThanOrEqual(base / 2 - 1);
      expect(ns).toBeLessThanOrEqual(base);
    }
  });

  it("has its cap applied before the jitter", () => {
    const backoff = new Backoff({ base: "1s", cap: "10s" });
    const delays = Array.from({ length: 40 }, (_, n) => retryDelay(backoff, 1, n + 20, id));
    // Capped after the jitter, nearly all of these would be the cap itself.
    expect(delays.every((delay) => delay < 10_000)).toBe(true);
    expect(new Set(delays).size).toBeGreaterThan(30);
  });

  it("is exactly the cap without jitter, once it is reached", () => {
    expect(retryDelay(new Backoff({ base: "1s", cap: "10s" }), 0, 40, id)).toBe(10_000);
  });

  it("is the same for the same job and attempt", () => {
    const delays = [1, 2, 3].map(() => retryDelay(new Backoff(), 0.5, 7, id));
    expect(new Set(delays).size).toBe(1);
  });

  it("stays between base × (1 − fraction) and the cap, whatever the job", () => {
    const backoff = new Backoff({ base: "1s", cap: "300s" });
    fc.assert(
      fc.property(
        anyJobId,
        fc.integer({ min: 1, max: 79 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (jobId, attempt, fraction) => {
          const base = Number(
            [retryMultiplier(attempt) * 1_000_000_000n, 300_000_000_000n].reduce((x, y) =>
              y < x ? y : x,
            ),
          );
          const ns = retryDelayNs(backoff, fraction, attempt, jobId);
          expect(ns).toBeLessThanOrEqual(base);
          expect(ns).toBeGreaterThanOrEqual(base * (1 - fraction) - 1);
          expect(retryDelayNs(backoff, fraction, attempt, jobId)).toBe(ns);
        },
      ),
    );
  });

  it("never shrinks between attempts where there is no jitter", () => {
    const delays = Array.from({ length: 200 }, (_, n) => retryDelay(new Backoff(), 0, n, id));
    expect(delays).toEqual([...delays].sort((x, y) => x - y));
    expect(delays.at(-1)).toBe(120_000);
  });

  it("is a finite whole number for absurd bases, caps and attempts", () => {
    for (const base of [1e15, 1e300, Number.POSITIVE_INFINITY, 0.001]) {
      for (const cap of [1, 1e15, Number.POSITIVE_INFINITY]) {
        const backoff = new Backoff({ base, cap });
        for (const attempt of [1, 3, 50, 93, 94, 200, 2 ** 31, 2 ** 53 - 1]) {
          const delay = retryDelay(backoff, 0.5, attempt, id);
          expect(Number.isFinite(delay) && Math.trunc(delay) === delay && delay >= 0).toBe(true);
          expect(delay).toBeLessThanOrEqual(backoff.capMs);
        }
      }
    }
  });

  it("is told in whole milliseconds, truncated", () => {
    expect(retryDelay(new Backoff({ base: 1.9999 }), 0, 3, id)).toBe(1);
    expect(retryDelay(new Backoff({ base: 8_999_999_999.999998 }), 0, 3, id)).toBe(8_999_999_999);
  });

  it.each([[-1], [1.5], [Number.NaN], [Number.POSITIVE_INFINITY], ["3"]])(
    "refuses %s as an attempt",
    (attempt) => {
      expect(() => retryDelay(new Backoff(), 0.5, attempt as number, id)).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "attempt" }),
      );
    },
  );

  it("refuses a malformed id and a NaN fraction", () => {
    expect(() => retryDelay(new Backoff(), 0.5, 3, "nonsense")).toThrow(/not a job id/);
    expect(() => retryDelay(new Backoff(), Number.NaN, 3, id)).toThrow(/jitterFraction/);
    let thrown: unknown;
    try {
      retryDelay(new Backoff(), 0.5, 3, "");
    } catch (error) {
      thrown = error;
    }
    expect(isVenturiError(thrown)).toBe(true);
  });
});
