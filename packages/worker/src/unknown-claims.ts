import type { CancelTimer, Clock } from "./clock.ts";

/**
 * How long after a lost answer the store is looked through a second time, in milliseconds: a claim whose connection is gone
 * may still be carried out. The time starts again when the next claim is answered: what held up the lost claims is over
 * then, so they are carried out about now.
 */
const lookAgainMs = 15_000;

export interface UnknownClaimsOptions {
  readonly clock: Clock;
  /** Looks through the store. Resolves with whether no such claim is left; rejects to be called again soon. */
  readonly look: () => Promise<boolean>;
  /** The second look has become due, whatever the worker does or sleeps for by then. */
  readonly onLookDue: () => void;
}

/** Decides when to look for claims that the store may hold for this worker without its knowing, since answers were lost. */
export class UnknownClaims {
  readonly #options: UnknownClaimsOptions;
  #isFirstLookDue = false;
  #lookAgainAt = Number.POSITIVE_INFINITY;
  /** Whether no claim has been answered since one failed. */
  #isUnanswered = false;
  #isStopped = false;
  #cancelTimer: CancelTimer | null = null;

  constructor(options: UnknownClaimsOptions) {
    this.#options = options;
  }

  /** Whether there may be such claims, or may yet be: of a claim that has not been carried out so far. */
  get mayExist(): boolean {
    return this.#isFirstLookDue || this.#lookAgainAt < Number.POSITIVE_INFINITY;
  }

  get isLookDue(): boolean {
    return this.#isFirstLookDue || this.#options.clock.now() >= this.#lookAgainAt;
  }

  /** A claim has failed, for whatever reason: it may be several statements, of which an earlier one has been carried out. */
  claimFailed(): void {
    this.#isFirstLookDue = true;
    this.#isUnanswered = true;
    this.#lookAgain();
  }

  claimAnswered(): void {
    if (!this.#isUnanswered) return;
    this.#isUnanswered = false;
    // A look was due, but had to wait for this answer. Lost claims may have waited too, and be carried out just now.
    if (this.#options.clock.now() >= this.#lookAgainAt) this.#isFirstLookDue = true;
    this.#lookAgain();
  }

  /** To be called with no claim in flight. */
  async look(): Promise<void> {
    const isLast = this.#options.clock.now() >= this.#lookAgainAt;
    const isNoneLeft = await this.#options.look();
    this.#isFirstLookDue = false;
    if (!isNoneLeft) this.#lookAgain();
    else if (isLast) this.#lookAgainAt = Number.POSITIVE_INFINITY;
  }

  /** Calls for no further look. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  #lookAgain(): void {
    this.#lookAgainAt = this.#options.clock.now() + lookAgainMs;
    this.#arm();
  }

  #arm(): void {
    this.#cancelTimer?.();
    if (this.#isStopped) return;
    const { clock, onLookDue } = this.#options;
    this.#cancelTimer = clock.after(this.#lookAgainAt - clock.now(), () => {
      // A timer may be a little early.
      if (clock.now() < this.#lookAgainAt) this.#arm();
      else onLookDue();
    });
  }
}
