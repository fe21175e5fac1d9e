import { type Backoff, retryDelay } from "./backoff.ts";
import type { JobId } from "./job-id.ts";
import { reachesBackstop } from "./settlement.ts";
import type { WorkerId } from "./store.ts";

/**
 * A worker that has been silent for this long, in milliseconds, is not counted among those that share work
 * (`BeatResult.others`), however long its own timeout is.
 */
export const COUNTED_SILENCE_MS = 300_000;

/** A claim whose lease has passed, or whose holder has gone silent. */
export interface StaleClaim {
  readonly jobId: JobId;
  readonly kind: string;
  /** JSON text. */
  readonly payload: string;
  readonly runCount: number;
  readonly failureCount: number;
  /** How many failures make the job dead, as the claim says; null: never. */
  readonly backstop: number | null;
  readonly holder: WorkerId;
  /** Whether its lease has passed; if not, only its holder has gone silent. */
  readonly overdue: boolean;
  /** When the claim ends by the store's clock; absent where the store does not say. */
  readonly leaseExpiresAt?: Date | undefined;
}

/** What happens to the job of a stale claim: it is pending again after its backoff, or dead at its backstop. */
export interface Recovery {
  readonly jobId: JobId;
  readonly runCount: number;
  readonly holder: WorkerId;
  readonly outcome: "stale-recovered" | "dead";
  readonly delayMs: number;
  readonly note: string;
}

/** Decides one recovery. It counts as a failure of the job. */
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
