import { type Duration, type Instant, parseDuration, toEpochMs } from "@venturi/core";

/** Where a store in memory takes the time from. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

/**
 * A clock that stands still until a test moves it. It is made for a {@link MemoryStore}.
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

  /** Starts at the given instant, by default at the start of the year 2030. Throws `invalid-argument` for what is no instant. */
  constructor(start: Instant = new Date("2030-01-01T00:00:00Z")) {
    this.#now = toEpochMs(start, "start");
  }

  now(): number {
    return this.#now;
  }

  /** Moves the clock forward, and returns where it stands, in epoch milliseconds. Throws `invalid-argument` for what is no duration. */
  advance(duration: Duration): number {
    this.#now += parseDuration(duration);
    return this.#now;
  }

  /** Sets the clock to an instant, which may lie in its past. Throws `invalid-argument` for what is no instant. */
  set(instant: Instant): void {
    this.#now = toEpochMs(instant, "instant");
  }
}
