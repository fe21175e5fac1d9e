import { hasBrand } from "./brand.ts";
import { type Duration, durationMs } from "./duration.ts";
import { invalidArgument, readArgument } from "./errors.ts";
import { isArray } from "./is-array.ts";
import { jitterFactor, unitSample } from "./jitter.ts";
import type { JobId } from "./job-id.ts";

/** How delays grow with the failures of a job. */
export interface BackoffOptions {
  /**
   * What the Fibonacci numbers multiply, raised to 1 ms where it is shorter.
   * @defaultValue "500ms"
   */
  readonly base?: Duration | undefined;
  /**
   * The longest delay, raised to `base` where it is shorter. `Infinity`: delays grow without limit.
   * @defaultValue "2m"
   */
  readonly cap?: Duration | undefined;
}

const backoffBrand = Symbol.for("venturi.backoff");
const optionNames = new Set(["base", "cap"]);

/**
 * How long a failed job waits: `min(base × (fibonacci(attempt) − 1), cap)`. After its first two failures a job is tried
 * again at once; after the next ones it waits 1, 2, 4, 7, 12, 20 … times the base.
 *
 * Throws `invalid-argument` for an unknown option and for what is not a duration.
 *
 * @example new Backoff({ base: "1s", cap: "5m" })
 */
export class Backoff {
  readonly baseMs: number;
  readonly capMs: number;

  constructor(options: BackoffOptions = {}) {
    const { base = 500, cap = 120_000 } = readArgument("backoff", () => {
      if (typeof options !== "object" || options === null || isArray(options))
        throw invalidArgument("backoff", "must be an object", "its members are base and cap");
      for (const name of Object.keys(options)) {
        if (optionNames.has(name)) continue;
        throw invalidArgument(`backoff.${name}`, "is not an option", "use base and cap");
      }
      const read = (name: keyof BackoffOptions) =>
        readArgument(`backoff.${name}`, () => options[name]);
      return { base: read("base"), cap: read("cap") };
    });
    this.baseMs = Math.max(durationMs(base, "backoff.base"), 1);
    this.capMs = Math.max(durationMs(cap, "backoff.cap"), this.baseMs);
  }
}

// Not in a static block, for which the bundler would rename the class, and errors would print with that name.
Object.defineProperty(Backoff.prototype, backoffBrand, { value: true });

/** Whether a value is a `Backoff`, also one made by another copy of this package. */
export function isBackoff(value: unknown): value is Backoff {
  return hasBrand(value, backoffBrand);
}

/**
 * The delay before a failed job is tried again, in whole milliseconds (truncated). Jitter takes up to `jitterFraction`
 * (clamped to 0 … 1) of it away, always the same part for the same job and attempt.
 *
 * `attempt` counts the failures, this one included: the first failure is attempt 1. Throws `invalid-argument` for an
 * attempt that is no count, for a fraction that is NaN, and for a malformed id.
 *
 * @example retryDelay(new Backoff({ base: "1s", cap: "5m" }), 0.5, 3, "01ARZ3NDEKTSV4RRFFQ69G5FAV") // 877
 */
export function retryDelay(
  backoff: Backoff,
  jitterFraction: number,
  attempt: number,
  jobId: JobId,
): number {
  const ns = retryDelayNs(backoff, jitterFraction, attempt, jobId);
  // Division alone could round up across a whole millisecond.
  return (ns - (ns % 1e6)) / 1e6;
}

/** {@link retryDelay} in whole nanoseconds, the unit the rule is defined in. */
export function retryDelayNs(
  backoff: Backoff,
  jitterFraction: number,
  attempt: number,
  jobId: JobId,
): number {
  if (!Number.isSafeInteger(attempt) || attempt < 0) {
    throw invalidArgument("attempt", "is not a count", "pass the number of failures so far");
  }
  const factor = jitterFactor(jitterFraction, unitSample(jobId, attempt));
  let delay = toNs(backoff.baseMs) * retryMultiplier(attempt);
  const cap = toNs(backoff.capMs);
  if (delay > cap) delay = cap;
  return Math.trunc(Number(delay) * factor);
}

const lastMultiplier = 94;
const maxUint64 = 2n ** 64n - 1n;

/** `fibonacci(attempt) − 1`, saturating one below 2^64 − 1 from attempt 94 on; 0 for attempts 0, 1 and 2. */
export function retryMultiplier(attempt: number): bigint {
  let previous = 0n;
  let current = 1n;
  for (let n = 1; n < Math.min(attempt, lastMultiplier); n += 1) {
    [previous, current] = [current, previous + current];
  }
  if (current > maxUint64) current = maxUint64;
  return current - 1n;
}

function toNs(ms: number): bigint {
  return BigInt(Math.round(Math.min(ms * 1e6, Number.MAX_VALUE)));
}
