/** The store's clock was set forward if it has moved by this much more than time has passed, in milliseconds. */
const stepMs = 1_000;

/** An answer of the store to a beat; the instants are the worker's own, monotonic ones. */
export interface Answer {
  readonly sentAt: number;
  readonly now: number;
  /** What the store's clock said, in epoch milliseconds. */
  readonly clockMs?: number | undefined;
}

/** A time in which no beat was answered. */
interface Gap {
  readonly ms: number;
  readonly endedAt: number;
}

/**
 * Knows since when a worker has heard from the store without a gap, so that the silence of another worker means something:
 * there was no outage that cut off both of them, and the store's clock was not set forward.
 */
export class Steadiness {
  /** Before it, nothing is known: the worker's start, or the moment at which the store's clock was found set. */
  #startedAt: number;
  #lastSentAt: number;
  #lastClockMs: number | undefined;
  /**
   * The gaps that may still matter, each shorter than the one before. The time between two regular beats is a gap as well:
   * a worker that has to beat more often may have been cut off in it.
   */
  #gaps: readonly Gap[] = [];

  constructor(now: number) {
    this.#startedAt = now;
    this.#lastSentAt = now;
  }

  /** When the last beat was sent that was answered; before the first, the start. */
  get lastSentAt(): number {
    return this.#lastSentAt;
  }

  /** A beat was answered. Returns for how long the others may have heard nothing of this worker, in milliseconds. */
  answered({ sentAt, now, clockMs }: Answer): number {
    // From sending to now: an answer that waited while this process stood still says nothing about that time.
    const ms = now - this.#lastSentAt;
    this.#lastSentAt = sentAt;
    const stoodMs = (clockMs ?? Number.NaN) - (this.#lastClockMs ?? Number.NaN);
    this.#lastClockMs = clockMs;
    if (stoodMs > ms + stepMs) this.#startedAt = now;
    const rest = this.#gaps.filter((gap) => gap.ms > ms && now - gap.endedAt < 2 * gap.ms);
    this.#gaps = [...rest, { ms, endedAt: now }];
    // While this machine was suspended its own clock may have stood still, but the store's went on.
    return Number.isNaN(stoodMs) ? ms : Math.max(ms, stoodMs);
  }

  /** Since when there has been no gap longer than half of `timeoutMs`: a monotonic instant. */
  since(timeoutMs: number): number {
    const gaps = this.#gaps.filter(({ ms }) => ms > timeoutMs / 2);
    return gaps.reduce((since, { endedAt }) => Math.max(since, endedAt), this.#startedAt);
  }
}
