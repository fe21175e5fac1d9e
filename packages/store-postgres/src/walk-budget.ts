/**
 * How often a worker session may look at everything from the start. Mostly that takes no time, and it may do so with
 * every claim. Behind a snapshot that somebody holds it takes longer by the minute, and for each single job that comes
 * it would take a server's whole time; then it may do so for a twentieth of the time.
 */
export class WalkBudget {
  readonly #share: number;
  readonly #mostMs: number;
  readonly #freeMs: number;
  #leftMs: number;
  #at = 0;

  constructor({ share = 1 / 20, mostMs = 250, freeMs = 2 }: WalkBudgetOptions = {}) {
    this.#share = share;
    this.#mostMs = mostMs;
    this.#freeMs = freeMs;
    this.#leftMs = mostMs;
  }

  /** Whether a walk that took so long, in milliseconds, is paid for. */
  isDear(walkMs: number): boolean {
    return walkMs > this.#freeMs;
  }

  allows(now: number): boolean {
    this.#refill(now);
    return this.#leftMs > 0;
  }

  spend(walkMs: number, now: number): void {
    this.#refill(now);
    if (this.isDear(walkMs)) this.#leftMs -= walkMs;
  }

  #refill(now: number): void {
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs + this.#share * (now - this.#at));
    this.#at = now;
  }
}

export interface WalkBudgetOptions {
  /** Which part of the time walks may take in the long run. */
  readonly share?: number;
  /** How much may be saved up, in milliseconds. */
  readonly mostMs?: number;
  /** What a walk may take to count as nothing, in milliseconds. */
  readonly freeMs?: number;
}
