import { planAhead } from "@venturi/core";

/** How many jobs to claim before there is a slot for them: "auto" follows the work, a number stays. */
export type Prefetch = "auto" | number;

/** How long to observe handlers before deciding again, in milliseconds in which any of them ran. */
const windowMs = 50;
/** How many ended handlers for each slot are enough to decide sooner, so that a worker that has just started need not wait. */
const windowRounds = 2;
/** Handlers that run for longer than this are long: no jobs are claimed ahead to wait behind them. In milliseconds. */
const longMs = 250;
/** For how long at most nothing is claimed ahead after long handlers have ended, in milliseconds. */
const mostCautionMs = 60_000;

/** Observes handlers, and decides how many jobs to claim ahead of free slots. */
export class ClaimAhead {
  readonly #prefetch: Prefetch;
  readonly #concurrency: number;
  #target: number;
  #finished = 0;
  #tookMs = 0;
  #busyMs = 0;
  #busySince: number | null = null;
  /** Until then nothing is claimed ahead: long handlers have ended lately, and more may follow. */
  #cautiousUntil = Number.NEGATIVE_INFINITY;

  constructor(prefetch: Prefetch, concurrency: number) {
    this.#prefetch = prefetch;
    this.#concurrency = concurrency;
    this.#target = prefetch === "auto" ? 0 : prefetch;
  }

  /** How many jobs to hold at most besides those that have slots. */
  get target(): number {
    return this.#target;
  }

  /**
   * The same for a claim that is made now. Where short and long handlers mix, their average says nothing about the next
   * handler, and jobs claimed ahead would wait behind the long ones. So "auto" claims nothing ahead while long handlers
   * hold half of the slots; nor, after a long handler has ended, for as long as it took divided by the number of slots.
   *
   * @param runningSince - Counts the running handlers that had started by an instant.
   */
  targetNow(now: number, runningSince: (instant: number) => number): number {
    if (this.#prefetch !== "auto" || this.#target === 0) return this.#target;
    if (now < this.#cautiousUntil) return 0;
    return 2 * runningSince(now - longMs) >= this.#concurrency ? 0 : this.#target;
  }

  /** Whether the worker decides by itself how many jobs to claim ahead. */
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
   * Jobs claimed ahead have waited for too long. What was observed no longer holds, so nothing is claimed ahead until a
   * handler has ended: it would only be handed back.
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
