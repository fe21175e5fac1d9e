/** A store's clock that has moved by so much more than time has passed was set forward, in milliseconds. */
const stepMs = 1_000;

/** An answer of the store to a beat; the instants are the worker's own, monotonic ones. */
export interface Answer {
  readonly sentAt: number;
  readonly now: number;
  /** What the store's clock said, in epoch milliseconds. */
  readonly clockMs?: number | undefined;
}

interface Gap {
  readonly ms: number;
  readonly endedAt: number;
}

/**
 * Since when a worker has heard from the store often enough to know that another, which it has not heard of, could have
 * been heard of: that there was no outage that both had, and that the store's clock was not set forward.
 */
export class Steadiness {
  /** Before it, nothing is known: the worker's start, or the moment at which the store's clock was found set. */
  #startedAt: number;
  #lastSentAt: number;
  #lastClockMs: number | undefined;
  /**
   * The times without an answer that may still matter, each shorter than the one before. That of a regular beat is one
   * as well: whoever promised to beat more often can have been cut off in it.
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

  /** Hears that a beat was answered; returns for how long the others may have heard nothing, in milliseconds. */
  answered({ sentAt, now, clockMs }: Answer): number {
    // From the sending: an answer that lay there while this process stood still says nothing of the time since.
    const ms = now - this.#lastSentAt;
    this.#lastSentAt = sentAt;
    const stoodMs = (clockMs ?? Number.NaN) - (this.#lastClockMs ?? Number.NaN);
    this.#lastClockMs = clockMs;
    if (stoodMs > ms + stepMs) this.#startedAt = now;
    const rest = this.#gaps.filter((gap) => gap.ms > ms && now - gap.endedAt < 2 * gap.ms);
    this.#gaps = [...rest, { ms, endedAt: now }];
    // The store's clock has gone on while this machine was suspended; its own may have stood still.
    return Number.isNaN(stoodMs) ? ms : Math.max(ms, stoodMs);
  }

  /** Since when there has been no time without an answer of more than half of a worker's timeout. */
  since(timeoutMs: number): number {
    const gaps = this.#gaps.filter(({ ms }) => ms > timeoutMs / 2);
    return gaps.reduce((since, { endedAt }) => Math.max(since, endedAt), this.#startedAt);
  }
}
