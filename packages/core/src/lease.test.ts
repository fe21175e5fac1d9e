import { describe, expect, it } from "vitest";
import { toLeaseMs } from "./lease.ts";

describe("a lease", () => {
  it.each([
    [0, 1000],
    ["0.5s", 1000],
    [1000.9, 1000],
    ["60s", 60_000],
    ["400d", 365 * 86_400_000],
    [1e18, 365 * 86_400_000],
    [Number.POSITIVE_INFINITY, 365 * 86_400_000],
  ])("of %s is %d ms", (given, ms) => {
    expect(toLeaseMs(given, "lease")).toBe(ms);
  });

  it.each([[-1], [Number.NaN], ["5 parsecs"], [null]])("is not %s", (given) => {
    expect(() => toLeaseMs(given, "lease")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "lease" }),
    );
  });
});
