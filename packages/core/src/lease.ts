import { durationMs } from "./duration.ts";

/** The shortest lease a task or worker can ask for, in milliseconds. */
export const MIN_LEASE_MS = 1_000;
/** The longest lease a task or worker can ask for, in milliseconds: 365 days. */
export const MAX_LEASE_MS = 365 * 86_400_000;

/**
 * A lease in whole milliseconds, clamped to 1 second … 365 days.
 *
 * Throws `invalid-argument` for NaN, a negative number and malformed text.
 */
export function toLeaseMs(value: unknown, argument: string): number {
  const ms = durationMs(value, argument);
  return Math.trunc(Math.min(Math.max(ms, MIN_LEASE_MS), MAX_LEASE_MS));
}
