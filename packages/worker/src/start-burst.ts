import type { CancelTimer, Clock } from "./clock.ts";

/**
 * Starting handlers may take this long before whatever else is ready is seen to, in milliseconds: what has ended is
 * settled, and more is claimed, while the rest still waits.
 */
const mostBurstMs = 2;

/** Bounds for how long handlers are started without a break, so that a large batch does not hold up the event loop. */
export class StartBurst {
  readonly #clock: Clock;
  readonly #onNext: () => void;
  #startedAt = 0;
  #cancelNext: CancelTimer | null = null;

  /** @param onNext - Begins the next burst. */
  constructor(clock: Clock, onNext: () => void) {
    this.#clock = clock;
    this.#onNext = onNext;
  }

  /** Whether one more handler may be started now; if not, `onNext` is called. */
  goesOn(now: number): boolean {
    if (this.#cancelNext !== null) return now - this.#startedAt < mostBurstMs;
    this.#startedAt = now;
    this.beginSoon();
    return true;
  }

  /** Begins the next burst after everything that is ready now. */
  beginSoon(): void {
    this.#cancelNext ??= this.#clock.soon(() => {
      this.#cancelNext = null;
      this.#onNext();
    });
  }

  /** Begins no further burst. */
  stop(): void {
    this.#cancelNext?.();
  }
}
