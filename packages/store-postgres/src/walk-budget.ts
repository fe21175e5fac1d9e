/**
 * How often a worker session may look at everything from the start. Mostly that takes no time, and it may do so with
 * every claim. Behind a snapshot that somebody holds it takes longer by the minute, and for each single job that comes
 * it would take a server's whole time; then it may do so for a fortieth of the time. Marks look at single tiers for
 * another fortieth.
 */
export class WalkBudget {
  readonly #share: number;
  readonly #mostMs: number;
  readonly #mostDebtMs: number;
  readonly #freeMs: number;
  #leftMs: number;
  #at = 0;
  /** How long the last dear walk took. */
  #tookMs = 0;

  constructor({
    share = walkShare,
    mostMs = 250,
    mostDebtMs = 5_000,
    freeMs = dearMs,
  }: WalkBudgetOptions = {}) {
    this.#share = share;
    this.#mostMs = mostMs;
    this.#mostDebtMs = mostDebtMs;
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
    if (!this.isDear(walkMs)) return;
    const costMs = walkCost(walkMs, this.#tookMs);
    this.#tookMs = walkMs;
    this.#leftMs = Math.max(-this.#mostDebtMs, this.#leftMs - costMs);
  }

  #refill(now: number): void {
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs + this.#share * (now - this.#at));
    this.#at = now;
  }
}

/** What walks may take to count as nothing, in milliseconds. */
export const dearMs = 2;

/** Which part of the time walks of one sort may take in the long run. */
export const walkShare = 1 / 40;

/**
 * What a walk counts for, in milliseconds: what it took, but at most twice what the last dear one took. That a server once
 * stood still says nothing about the next walk.
 */
export function walkCost(walkMs: number, lastMs: number): number {
  return Math.min(walkMs, 2 * lastMs);
}

export interface WalkBudgetOptions {
  /**
   * Which part of the time walks may take in the long run.
   * @defaultValue 1/40
   */
  readonly share?: number;
  /** How much may be saved up, in milliseconds. */
  readonly mostMs?: number;
  /** How much may be owed, in milliseconds: some walks are made whether or not they are paid for. */
  readonly mostDebtMs?: number;
  /** What a walk may take to count as nothing, in milliseconds. */
  readonly freeMs?: number;
}
