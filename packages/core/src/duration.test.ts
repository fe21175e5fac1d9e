import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  differenceMs,
  durationMs,
  FAR_FUTURE_MS,
  type Instant,
  parseDuration,
  toDate,
  toEpochMs,
} from "./duration.ts";
import { show } from "./errors.ts";

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const notDurations: readonly unknown[] = [
  Number.NaN,
  "",
  "5",
  "5 parsecs",
  "5 s",
  " 5s",
  "5s ",
  "5S",
  "-5m",
  "+5m",
  "1e3ms",
  "0x10ms",
  ".5s",
  "5.s",
  "5.5.5s",
  "1,5s",
  "Infinityms",
  "5s\n",
  "٥s",
  null,
  undefined,
  {},
  [],
  true,
  5n,
];

describe("a duration", () => {
  it("is text with a unit, or a number of milliseconds", () => {
    expect(parseDuration("250ms")).toBe(250);
    expect(parseDuration("5s")).toBe(5000);
    expect(parseDuration("1.5h")).toBe(5_400_000);
    expect(parseDuration("7d")).toBe(604_800_000);
    expect(parseDuration("00012s")).toBe(12_000);
    expect(parseDuration(1234.5)).toBe(1234.5);
    expect(parseDuration(0)).toBe(0);
  });

  it("may be infinite, which means never", () => {
    expect(parseDuration(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  });

  it.each(notDurations.map((value) => [show(value), value]))("is not %s", (_, value) => {
    expect(() => durationMs(value, "lease")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "lease" }),
    );
  });

  it("is not negative", () => {
    expect(() => durationMs(-1, "lease")).toThrow(
      'lease is not a duration (got -1): pass milliseconds, not negative, or text such as "500ms"',
    );
    expect(() => durationMs(Number.NEGATIVE_INFINITY, "lease")).toThrow(/not a duration/);
  });

  it("reads back what was written with any unit", () => {
    const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]));
    fc.assert(
      fc.property(fc.nat(1_000_000), unit, (count, name) => {
        expect(parseDuration(`${count}${name}`)).toBe(count * units[name]);
      }),
    );
  });
});

describe("a difference of times", () => {
  it("is 0 where it is negative", () => {
    expect(differenceMs(-1, "delay")).toBe(0);
    expect(differenceMs(Number.NEGATIVE_INFINITY, "delay")).toBe(0);
  });

  it("is in whole milliseconds, truncated", () => {
    expect(differenceMs(1.9, "delay")).toBe(1);
    expect(differenceMs("0.5ms", "delay")).toBe(0);
  });

  it.each([
    Number.POSITIVE_INFINITY,
    Number.MAX_SAFE_INTEGER,
    Number.MAX_VALUE,
    1e18,
    "9999999999d",
  ])("of %s saturates to the far date", (value) => {
    expect(differenceMs(value, "delay")).toBe(FAR_FUTURE_MS);
  });

  it.each(notDurations.map((value) => [show(value), value]))("is not %s", (_, value) => {
    expect(() => differenceMs(value, "delay")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "delay" }),
    );
  });
});

describe("a moment", () => {
  it("is a Date, or anything with epochMilliseconds", () => {
    expect(toEpochMs(new Date(1234), "runAt")).toBe(1234);
    expect(toEpochMs({ epochMilliseconds: 1234 }, "runAt")).toBe(1234);
    expect(toDate({ epochMilliseconds: 1234.9 }, "runAt")).toEqual(new Date(1234));
  });

  it("may be a Date of another realm", () => {
    expect(toEpochMs(runInNewContext("new Date(1234)"), "runAt")).toBe(1234);
    expect(() => toEpochMs(runInNewContext("new Date(NaN)"), "runAt")).toThrow(/not a moment/);
  });

  it("is a copy: the caller's Date may change", () => {
    const given = new Date(1234);
    expect(toDate(given, "runAt")).not.toBe(given);
  });

  it("saturates to the far date, which round-trips", () => {
    const far = new Date(FAR_FUTURE_MS);
    expect(far.toISOString()).toBe("9999-01-01T00:00:00.000Z");
    expect(toDate(new Date("+012024-01-01T00:00:00Z"), "runAt")).toEqual(far);
    expect(toDate({ epochMilliseconds: Number.POSITIVE_INFINITY }, "runAt")).toEqual(far);
    expect(toDate(new Date(8.64e15), "runAt")).toEqual(far);
  });

  it("is not before 1970", () => {
    expect(toEpochMs(new Date(-1), "runAt")).toBe(0);
    expect(toEpochMs(new Date(-8.64e15), "runAt")).toBe(0);
  });

  it("is not an invalid Date", () => {
    expect(() => toEpochMs(new Date(Number.NaN), "runAt")).toThrow(/runAt is an invalid Date/);
  });

  it.each([[{ epochMilliseconds: Number.NaN }], [{}], [null], [1234], ["2024-01-01"], [undefined]])(
    "is not %j",
    (value) => {
      expect(() => toEpochMs(value as Instant, "runAt")).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "runAt" }),
      );
    },
  );

  it("lies between 1970 and the far date whatever was given", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (epochMilliseconds) => {
        const date = toDate({ epochMilliseconds }, "runAt");
        expect(new Date(date.toISOString())).toEqual(date);
      }),
    );
  });
});
