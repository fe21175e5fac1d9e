import type { ClaimRef, JobId, UndoneClaim } from "@venturi/core";

/** Two claims of one job are further apart; what one and the same is said to end at differs by less, in milliseconds. */
const mostRoundingMs = 2;

interface Held {
  readonly runCount: number;
  readonly leaseEndsMs: number | null;
  /** Whether it is being handed back, so that the job may be claimed anew under the same run count. */
  readonly isUndone: boolean;
}

/** The claims that this worker has been given and whose end the store has not confirmed yet: of each job the newest. */
export class HeldClaims {
  readonly #claims = new Map<JobId, Held>();

  get size(): number {
    return this.#claims.size;
  }

  add(claim: UndoneClaim): void {
    this.#put(claim, false);
  }

  /** This claim is being handed back. */
  undo(claim: UndoneClaim): void {
    this.#put(claim, true);
  }

  /** A run has ended, or its claim is no longer held. */
  remove({ jobId, runCount }: ClaimRef): void {
    const held = this.#claims.get(jobId);
    if (held?.runCount === runCount) this.#claims.delete(jobId);
  }

  /** This claim has been handed back; a newer one of the same job stays, also of the same run count. */
  removeUndone(claim: UndoneClaim): void {
    const held = this.#claims.get(claim.jobId);
    if (held?.isUndone && isOf(claim, held)) this.#claims.delete(claim.jobId);
  }

  /** Whether a claim as the store lists it is known here. The lease of one whose handler runs may have been extended. */
  knows(claim: UndoneClaim): boolean {
    const held = this.#claims.get(claim.jobId);
    if (held === undefined || held.runCount !== claim.runCount) return false;
    return !held.isUndone || isOf(claim, held);
  }

  jobIds(): JobId[] {
    return [...this.#claims.keys()];
  }

  #put(claim: UndoneClaim, isUndone: boolean): void {
    const held = this.#claims.get(claim.jobId);
    if (held !== undefined && isOlder(claim, held)) return;
    const { runCount } = claim;
    this.#claims.set(claim.jobId, { runCount, leaseEndsMs: leaseEndsMsOf(claim), isUndone });
  }
}

function leaseEndsMsOf({ leaseExpiresAt }: UndoneClaim): number | null {
  return leaseExpiresAt?.getTime() ?? null;
}

/** Whether the one is the other: a claim that is handed back takes the rise of its run count back. */
function isOf(claim: UndoneClaim, held: Held): boolean {
  if (claim.runCount !== held.runCount) return false;
  const leaseEndsMs = leaseEndsMsOf(claim);
  if (leaseEndsMs === null || held.leaseEndsMs === null) return true;
  return Math.abs(leaseEndsMs - held.leaseEndsMs) < mostRoundingMs;
}

function isOlder(claim: UndoneClaim, held: Held): boolean {
  if (claim.runCount !== held.runCount) return claim.runCount < held.runCount;
  return !isOf(claim, held) && (leaseEndsMsOf(claim) ?? 0) < (held.leaseEndsMs ?? 0);
}
