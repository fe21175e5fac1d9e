import type { JobId, WorkerId, WorkerStore } from "@venturi/core";
import type { Clock } from "./clock.ts";
import type { UnstartedClaim } from "./hand-back.ts";

const batchLimit = 1_000;

export interface LostClaimsOptions {
  readonly store: Pick<WorkerStore, "findStale">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly isHeld: (jobId: JobId, runCount: number) => boolean;
  readonly leaseMsOf: (kind: string) => number;
  readonly handBack: (claim: UnstartedClaim) => void;
}

/**
 * Undoes claims of this worker that it knows nothing of: their claim was carried out, but the connection broke before
 * its answer arrived. Nobody else would look for them while this worker lives. To be called with no claim in flight.
 */
export async function undoLostClaims(options: LostClaimsOptions): Promise<void> {
  const { store, worker, clock, isHeld, leaseMsOf, handBack } = options;
  const holders = [{ worker, overdueOnly: false }];
  let known = 0;
  for (;;) {
    const limit = batchLimit + known;
    const { claims } = await store.findStale({ holders, orphans: false, limit });
    const lost = claims.filter(({ jobId, runCount }) => !isHeld(jobId, runCount));
    for (const { jobId, runCount, kind, leaseExpiresAt } of lost) {
      const leaseEndsAt = clock.now() + leaseMsOf(kind);
      handBack({ jobId, runCount, kind: null, leaseExpiresAt, leaseEndsAt });
    }
    // What has just been handed back is held until the store confirms it, so a further look sees it as known.
    known = claims.length;
    if (claims.length < limit) return;
  }
}
