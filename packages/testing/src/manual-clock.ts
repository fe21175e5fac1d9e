import { type Duration, type Instant, parseDuration, toEpochMs } from "@venturi/core";

/** Where a store in memory takes the time from. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

/**
 * A clock that stands still until it is moved: the time of a {@link MemoryStore}, and, through whatever a test
 * replaces a database's clock with, of any other store.
 *
 * @example
 * ```ts
 * const clock = new ManualClock();
 * const store = new MemoryStore({ clock });
 * clock.advance("1h"); // what was due within the hour is due now
 * ```
 */
export class ManualClock implements Clock {
  #now: number;

  /** Starts at the given instant; at the start of the year 2030 unless one is given. Throws `invalid-argument`. */
  constructor(start: Instant = new Date("2030-01-01T00:00:00Z")) {
    this.#now = toEpochMs(start, "start");
  }

  now(): number {
    return this.#now;
  }

  /** Moves the clock on and returns where it stands, in epoch milliseconds. Throws `invalid-argument`. */
  advance(duration: Duration): number {
    this.#now += parseDuration(duration);
    return this.#now;
  }

  /** Puts the clock to an instant, which may lie in its past. Throws `invalid-argument`. */
  set(instant: Instant): void {
    this.#now = toEpochMs(instant, "instant");
  }
}
