import { invalidArgument, readArgument, show } from "./errors.ts";

/**
 * A span of time: a number of milliseconds, or text such as "500ms", "1.5s", "10m", "2h", "30d".
 *
 * The compiler cannot check text that comes from configuration: pass it through {@link parseDuration}.
 */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

/** A moment: a `Date`, or anything with `epochMilliseconds`, such as a `Temporal.Instant`. */
export type Instant = Date | { readonly epochMilliseconds: number };

/**
 * The far date, 9999-01-01T00:00:00Z in epoch milliseconds: what lies beyond it, infinity included, is stored as
 * this. It round-trips through a JavaScript `Date`, through PostgreSQL, and through ISO text with a four-digit year.
 */
export const FAR_FUTURE_MS = 253_370_764_800_000;

const textPattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * The milliseconds of a duration that comes from configuration; `Infinity` is kept.
 *
 * Throws `invalid-argument` for NaN, a negative number and malformed text.
 */
export function parseDuration(value: string | number): number {
  return durationMs(value, "duration");
}

/** The milliseconds of a duration, not negative, perhaps fractional or infinite; `argument` is named when it is not one. */
export function durationMs(value: unknown, argument: string): number {
  const ms = readMs(value);
  if (ms >= 0) return ms;
  throw notADuration(value, argument);
}

/**
 * The whole milliseconds of a duration that is a difference of times: negative means 0, and what would pass the far
 * date is cut to it. NaN and malformed text throw `invalid-argument`.
 */
export function differenceMs(value: unknown, argument: string): number {
  const ms = readMs(value);
  if (Number.isNaN(ms)) throw notADuration(value, argument, "milliseconds");
  return Math.trunc(Math.min(Math.max(ms, 0), FAR_FUTURE_MS));
}

/** NaN for whatever is not a duration. */
function readMs(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return Number.NaN;
  const match = textPattern.exec(value);
  if (match === null) return Number.NaN;
  return Number(match[1]) * unitMs[match[2] as keyof typeof unitMs];
}

function notADuration(value: unknown, argument: string, number = "milliseconds, not negative") {
  return invalidArgument(
    argument,
    `is not a duration (got ${show(value)})`,
    `pass ${number}, or text such as "500ms", "30s", "5m", "2h", "7d"`,
  );
}

/**
 * A moment in whole epoch milliseconds, between 1970 (what is earlier is just as due) and the far date.
 *
 * Throws `invalid-argument` for an invalid `Date` and for anything that is not an {@link Instant}.
 */
export function toEpochMs(value: Instant, argument: string): number {
  const ms = readArgument(argument, () => readEpochMs(value));
  if (Number.isNaN(ms)) {
    throw invalidArgument(
      argument,
      value instanceof Date ? "is an invalid Date" : `is not a moment (got ${show(value)})`,
      "pass a valid Date, or an object with a number of epochMilliseconds",
    );
  }
  return Math.trunc(Math.min(Math.max(ms, 0), FAR_FUTURE_MS));
}

/** The same moment as a `Date`; see {@link toEpochMs}. */
export function toDate(value: Instant, argument: string): Date {
  return new Date(toEpochMs(value, argument));
}

const MAX_DATE_MS = 8.64e15;

/** A `Date` of epoch milliseconds that a store returned, infinite ones brought to the ends of what a `Date` holds. */
export function dateOf(epochMs: number): Date {
  return new Date(Math.min(Math.max(epochMs, -MAX_DATE_MS), MAX_DATE_MS));
}

/** NaN for whatever is not a moment. */
function readEpochMs(value: unknown): number {
  if (typeof value !== "object" || value === null) return Number.NaN;
  if (value instanceof Date) return value.getTime();
  const { epochMilliseconds, getTime } = value as {
    epochMilliseconds?: unknown;
    getTime?: unknown;
  };
  if (typeof epochMilliseconds === "number") return epochMilliseconds;
  // A Date of another realm is no instance of this one's class.
  return typeof getTime === "function" ? Number(getTime.call(value)) : Number.NaN;
}
