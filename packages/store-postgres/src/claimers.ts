import type { WorkerId } from "@venturi/core";
import type { OldPlace } from "./old-place.ts";

/** The claimer of a session that has not claimed for this long is dropped, in milliseconds. */
const unusedMs = 600_000;

/**
 * The claimers of a store, one for each session that claims. They only know where to look first: a session whose
 * claimer was dropped gets another, which looks at everything.
 */
export class Claimers<C extends { putBack(place: OldPlace | null): void }> {
  readonly #make: () => C;
  readonly #now: () => number;
  readonly #used = new Map<WorkerId, { readonly claimer: C; usedAt: number }>();

  constructor(make: () => C, now: () => number = () => performance.now()) {
    this.#make = make;
    this.#now = now;
  }

  of(worker: WorkerId): C {
    const now = this.#now();
    const known = this.#used.get(worker);
    if (known !== undefined) {
      known.usedAt = now;
      return known.claimer;
    }
    for (const [other, { usedAt }] of this.#used)
      if (now - usedAt > unusedMs) this.#used.delete(other);
    const claimer = this.#make();
    this.#used.set(worker, { claimer, usedAt: now });
    return claimer;
  }

  /** The session has ended. */
  drop(worker: WorkerId): void {
    this.#used.delete(worker);
  }

  /** Tells all claimers of a job back at its old place; null: such jobs may be anywhere. */
  putBack(place: OldPlace | null): void {
    for (const { claimer } of this.#used.values()) claimer.putBack(place);
  }
}
