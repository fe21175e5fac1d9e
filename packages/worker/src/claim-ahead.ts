import { planAhead } from "@venturi/core";

/** How many jobs to claim before there is a slot for them: "auto" follows the work, a number stays. */
export type Prefetch = "auto" | number;

/** How long to observe handlers before deciding anew, in milliseconds in which any of them ran. */
const windowMs = 50;
/** So that a worker that has just started need not wait for it: as many ended handlers as this, for each slot. */
const windowRounds = 2;

/** Observes handlers and says how many jobs to claim ahead of a free slot. */
export class ClaimAhead {
  readonly #prefetch: Prefetch;
  readonly #concurrency: number;
  #target: number;
  #finished = 0;
  #tookMs = 0;
  #busyMs = 0;
  #busySince: number | null = null;

  constructor(prefetch: Prefetch, concurrency: number) {
    this.#prefetch = prefetch;
    this.#concurrency = concurrency;
    this.#target = prefetch === "auto" ? 0 : prefetch;
  }

  /** Jobs to hold beside those that have slots. */
  get target(): number {
    return this.#target;
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
