import type { ClaimRef, JobId, UndoneClaim, WorkerId, WorkerStore } from "@venturi/core";
import type { Clock } from "./clock.ts";
import type { UnstartedClaim } from "./hand-back.ts";

const batchLimit = 1_000;

export interface UndoUnknownClaimsOptions {
  readonly store: Pick<WorkerStore, "findStale">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  /** Whether this worker knows of a claim. */
  readonly isKnown: (claim: UndoneClaim) => boolean;
  /** Whether a handler of this job runs in this process, or a claim of it waits for a slot. */
  readonly isHere: (jobId: JobId) => boolean;
  readonly leaseMsOf: (kind: string) => number;
  readonly handBack: (claim: UnstartedClaim) => void;
}

/**
 * Undoes claims of this worker that it knows nothing of: their claim was carried out, but the connection broke before
 * its answer arrived. Nobody else would look for them while this worker lives. To be called with no claim in flight.
 *
 * Leaves alone what is here, since others would start it beside. Returns whether nothing was left.
 */
export async function undoUnknownClaims(options: UndoUnknownClaimsOptions): Promise<boolean> {
  const { store, worker, clock, isKnown, isHere, leaseMsOf, handBack } = options;
  const holders = [{ worker, overdueOnly: false }];
  let known = 0;
  for (;;) {
    const limit = batchLimit + known;
    const { claims } = await store.findStale({ holders, orphans: false, limit });
    const unknown = claims.filter((claim) => !isKnown(claim));
    const undone = unknown.filter(({ jobId }) => !isHere(jobId));
    for (const { jobId, runCount, kind, leaseExpiresAt } of undone) {
      const leaseEndsAt = clock.now() + leaseMsOf(kind);
      handBack({ jobId, runCount, kind: null, leaseExpiresAt, leaseEndsAt });
    }
    // What has just been handed back is held until the store confirms it, so a further look sees it as known.
    known = claims.length;
    if (claims.length < limit) return undone.length === unknown.length;
  }
}

export interface StillHeldOptions {
  readonly store: Pick<WorkerStore, "findStale">;
  readonly worker: WorkerId;
  /** How many claims this worker may hold. */
  readonly held: number;
}

/** Which of these claims the store still says are this worker's; also those of which the answer says nothing. */
export async function stillHeld<Claim extends ClaimRef>(
  { store, worker, held }: StillHeldOptions,
  claims: readonly Claim[],
): Promise<Claim[]> {
  const holders = [{ worker, overdueOnly: false }];
  const limit = held + batchLimit;
  const found = await store.findStale({ holders, orphans: false, limit });
  if (found.claims.length >= limit) return [...claims];
  const listed = new Map(found.claims.map(({ jobId, runCount }) => [jobId, runCount]));
  return claims.filter(({ jobId, runCount }) => listed.get(jobId) === runCount);
}
