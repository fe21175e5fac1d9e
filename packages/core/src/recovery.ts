import { type Backoff, retryDelay } from "./backoff.ts";
import type { JobId } from "./job-id.ts";
import { reachesBackstop } from "./settlement.ts";
import type { WorkerId } from "./store.ts";

/**
 * Whoever has been silent for so long, in milliseconds, does not share the work of the living (`BeatResult.others`),
 * however patient it is with itself.
 */
export const COUNTED_SILENCE_MS = 300_000;

/** A claim whose holder let its lease pass or has gone silent. */
export interface StaleClaim {
  readonly jobId: JobId;
  readonly kind: string;
  /** JSON text. */
  readonly payload: string;
  readonly runCount: number;
  readonly failureCount: number;
  /** The backstop that the claim carried; null: never. */
  readonly backstop: number | null;
  readonly holder: WorkerId;
  /** Whether its lease had passed, or only its holder had gone silent. */
  readonly overdue: boolean;
  /** When the claim ends by the store's clock; absent where the store does not say. */
  readonly leaseExpiresAt?: Date | undefined;
}

/** What happens to a stale claim: pending again after its backoff, or dead at the backstop it carried. */
export interface Recovery {
  readonly jobId: JobId;
  readonly runCount: number;
  readonly holder: WorkerId;
  readonly outcome: "stale-recovered" | "dead";
  readonly delayMs: number;
  readonly note: string;
}

/** Decides one recovery: it counts as a failed run, with the backoff of the task where that is known. */
export function decideRecovery(
  claim: StaleClaim,
  backoff: Backoff,
  jitterFraction: number,
): Recovery {
  // Not negative, whatever somebody has written into the row by hand.
  const attempt = Math.max(claim.failureCount, 0) + 1;
  const { jobId, runCount, holder } = claim;
  const cause = claim.overdue ? "its lease ended before it settled" : "its worker stopped beating";
  if (reachesBackstop(attempt, claim.backstop)) {
    const note = `run ${runCount} was lost: ${cause}; failure ${attempt} reaches the backstop of ${claim.backstop}`;
    return { jobId, runCount, holder, outcome: "dead", delayMs: 0, note };
  }
  const delayMs = retryDelay(backoff, jitterFraction, attempt, jobId);
  return {
    jobId,
    runCount,
    holder,
    outcome: "stale-recovered",
    delayMs,
    note: `run ${runCount} was lost: ${cause}`,
  };
}
