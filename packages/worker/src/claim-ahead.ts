import { planAhead } from "@venturi/core";

/** How many jobs to claim before there is a slot for them: "auto" follows the work, a number stays. */
export type Prefetch = "auto" | number;

/** How long to observe handlers before deciding anew, in milliseconds in which any of them ran. */
const windowMs = 50;
/** So that a worker that has just started need not wait for it: as many ended handlers as this, for each slot. */
const windowRounds = 2;
/** What is claimed ahead must not wait behind handlers that have run for longer than this, in milliseconds. */
const longMs = 250;
/** The end of long handlers is not remembered for longer than this, in milliseconds. */
const mostCautionMs = 60_000;

/** Observes handlers and says how many jobs to claim ahead of a free slot. */
export class ClaimAhead {
  readonly #prefetch: Prefetch;
  readonly #concurrency: number;
  #target: number;
  #finished = 0;
  #tookMs = 0;
  #busyMs = 0;
  #busySince: number | null = null;
  /** Long handlers have ended of late: more of them may follow. */
  #cautiousUntil = Number.NEGATIVE_INFINITY;

  constructor(prefetch: Prefetch, concurrency: number) {
    this.#prefetch = prefetch;
    this.#concurrency = concurrency;
    this.#target = prefetch === "auto" ? 0 : prefetch;
  }

  /** Jobs to hold beside those that have slots, at most. */
  get target(): number {
    return this.#target;
  }

  /**
   * The same for a claim made now. Where short and long handlers mix, their average says nothing about the next one,
   * and what is claimed ahead would wait behind the long ones: "auto" claims nothing ahead while these hold half of
   * the slots, nor after one has ended for as long as it took, shared among all slots.
   *
   * @param runningSince - How many handlers run that had started by an instant.
   */
  targetNow(now: number, runningSince: (instant: number) => number): number {
    if (this.#prefetch !== "auto" || this.#target === 0) return this.#target;
    if (now < this.#cautiousUntil) return 0;
    return 2 * runningSince(now - longMs) >= this.#concurrency ? 0 : this.#target;
  }

  /** Whether what waits too long is to be handed back sooner than its lease asks for. */
  get isAuto(): boolean {
    return this.#prefetch === "auto";
  }

  /** Handlers run from now on. */
  busy(now: number): void {
    this.#busySince ??= now;
  }

  /** No handler runs any more. */
  idle(now: number): void {
    if (this.#busySince === null) return;
    this.#busyMs += now - this.#busySince;
    this.#busySince = null;
    if (this.#prefetch === "auto") this.#decide();
  }

  /** A handler has ended. */
  ended(tookMs: number, now: number): void {
    if (this.#prefetch !== "auto") {
      this.#target = this.#prefetch;
      return;
    }
    if (tookMs >= longMs) this.#beCautious(tookMs / this.#concurrency, now);
    this.#finished += 1;
    this.#tookMs += tookMs;
    if (this.#busySince === null) return;
    this.#busyMs += now - this.#busySince;
    this.#busySince = now;
    this.#decide();
  }

  /**
   * What was claimed ahead has waited for too long. Whatever was observed is no longer so, and nothing is claimed
   * ahead before a handler has ended: it would be claimed only to be handed back.
   */
  stalled(): void {
    this.#target = 0;
    this.#startOver();
  }

  #beCautious(forMs: number, now: number): void {
    const until = Math.max(this.#cautiousUntil, now) + forMs;
    this.#cautiousUntil = Math.min(until, now + mostCautionMs);
  }

  #decide(): void {
    const enough = windowRounds * this.#concurrency;
    if (this.#busyMs < windowMs && this.#finished < enough) return;
    this.#target = planAhead({
      finished: this.#finished,
      tookMs: this.#tookMs,
      busyMs: this.#busyMs,
      concurrency: this.#concurrency,
    });
    this.#startOver();
  }

  #startOver(): void {
    this.#finished = 0;
    this.#tookMs = 0;
    this.#busyMs = 0;
  }
}
