import type { ClaimedJob, JobId, UndoneClaim } from "@venturi/core";

/** By how much the end of one claim's lease may differ between two answers, in milliseconds. Ends of two claims differ by more. */
const mostRoundingMs = 2;

/** A held claim: the claimed job itself, so that nothing has to be made for each job. */
interface Held extends Pick<UndoneClaim, "runCount" | "leaseExpiresAt"> {
  /** It is being handed back; after that the job may be claimed again under the same run count. */
  readonly isUndone?: true;
}

/** The claims that this worker has been given and whose end the store has not confirmed yet; only the newest of each job. */
export class HeldClaims {
  readonly #claims = new Map<JobId, Held>();

  get size(): number {
    return this.#claims.size;
  }

  add(job: Pick<ClaimedJob, "id" | "runCount" | "leaseExpiresAt">): void {
    this.#put(job.id, job);
  }

  /** This claim is being handed back. */
  undo(claim: UndoneClaim): void {
    this.#put(claim.jobId, { ...claim, isUndone: true });
  }

  /** A run has ended, or its claim is no longer held. */
  remove(jobId: JobId, runCount: number): void {
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

  #put(jobId: JobId, claim: Held): void {
    const held = this.#claims.get(jobId);
    if (held === undefined || !isOlder(claim, held)) this.#claims.set(jobId, claim);
  }
}

function leaseEndsMs({ leaseExpiresAt }: Held): number | null {
  return leaseExpiresAt?.getTime() ?? null;
}

/** Whether two claims are the same. The run count alone does not tell: handing back a claim lowers it again. */
function isOf(claim: Held, held: Held): boolean {
  if (claim.runCount !== held.runCount) return false;
  const [one, other] = [leaseEndsMs(claim), leaseEndsMs(held)];
  return one === null || other === null || Math.abs(one - other) < mostRoundingMs;
}

function isOlder(claim: Held, held: Held): boolean {
  if (claim.runCount !== held.runCount) return claim.runCount < held.runCount;
  return !isOf(claim, held) && (leaseEndsMs(claim) ?? 0) < (leaseEndsMs(held) ?? 0);
}
