import type { Clock } from "./clock.ts";
import { natureOf } from "./refusal.ts";

/** How long one that fails as those did that were found alike stands for all, in milliseconds. */
const splitAgainMs = 30_000;

/** How the last batch failed whose items failed alike: for a while nobody need find that out anew. */
export class FailedAlike {
  readonly #clock: Clock;
  #last: { readonly as: string; readonly until: number } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether items may still fail as they did. */
  get isRecent(): boolean {
    if (this.#last !== null && this.#clock.now() >= this.#last.until) this.#last = null;
    return this.#last !== null;
  }

  /** A batch was split, and all that were tried failed like this. */
  found(error: unknown): void {
    this.#last = { as: natureOf(error), until: this.#clock.now() + splitAgainMs };
  }

  /** Whether this is how they failed; another error, or a success, ends it. */
  isKnown(error: unknown): boolean {
    if (this.isRecent && this.#last?.as === natureOf(error)) return true;
    this.end();
    return false;
  }

  end(): void {
    this.#last = null;
  }
}
