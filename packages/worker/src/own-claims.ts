import type { JobId, StaleClaim } from "@venturi/core";
import type { Clock } from "./clock.ts";
import { doubled } from "./growing-delay.ts";

/** The first and the longest wait between tries, in milliseconds; the number of tries, and the wait after these. */
const firstMs = 20;
const mostMs = 1_000;
const mostTries = 10;
const rareMs = 60_000;

/** A claim of its own that a worker let become overdue. */
interface OwnClaim {
  readonly claim: StaleClaim;
  tries: number;
  at: number;
}

export interface OwnClaimsOptions {
  readonly clock: Clock;
  /** Returns those of the claims that are still held according to the store. Asked after many tries in vain. */
  readonly stillHeld: (claims: readonly StaleClaim[]) => Promise<readonly StaleClaim[]>;
  /** A claim is recovered, or was lost before. */
  readonly onOwnDone: (claim: StaleClaim) => void;
}

/** The claims that this very worker let become overdue, each until it is recovered, turns out to be lost, or is extended. */
export class OwnClaims {
  readonly #options: OwnClaimsOptions;
  #own: OwnClaim[] = [];

  constructor(options: OwnClaimsOptions) {
    this.#options = options;
  }

  /** When the next try is due. */
  get nextAt(): number {
    return this.#own.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
  }

  add(claim: StaleClaim): void {
    this.#own.push({ claim, tries: 0, at: this.#options.clock.now() });
  }

  /** The lease of a claim has been extended after all. */
  forget(jobId: JobId, runCount: number): void {
    this.#own = this.#own.filter(
      ({ claim }) => claim.jobId !== jobId || claim.runCount !== runCount,
    );
  }

  /** No try before this instant. */
  putOff(until: number): void {
    for (const own of this.#own) own.at = Math.max(own.at, until);
  }

  /** Tries those that are due; `recover` returns which it has recovered. */
  async recoverDue(
    recover: (claims: readonly StaleClaim[]) => Promise<readonly boolean[]>,
  ): Promise<void> {
    const { clock, stillHeld, onOwnDone } = this.#options;
    const now = clock.now();
    const due = this.#own.filter(({ at }) => at <= now);
    const applied = await recover(due.map(({ claim }) => claim));
    const done = new Set<OwnClaim>();
    const vain: OwnClaim[] = [];
    due.forEach((own, index) => {
      own.tries += 1;
      const isVain = own.tries >= mostTries;
      own.at = clock.now() + (isVain ? rareMs : doubled(firstMs, mostMs, own.tries));
      // Not applied: locked for a moment, not overdue by the store's clock yet, or no longer held at all.
      if (applied[index]) done.add(own);
      else if (isVain) vain.push(own);
    });
    if (vain.length > 0) {
      // A claim may still be held: its lease may have been extended by a statement whose answer was lost.
      const held = new Set(await stillHeld(vain.map(({ claim }) => claim)));
      for (const own of vain) if (!held.has(own.claim)) done.add(own);
    }
    this.#own = this.#own.filter((own) => !done.has(own));
    for (const { claim } of done) onOwnDone(claim);
  }
}
