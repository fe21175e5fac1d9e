import { isVenturiError } from "@venturi/core";
import { EnqueueLane, type Send } from "./enqueue-lane.ts";

/** What a queue enqueues through. */
export interface Backend {
  /** Outside of everybody's transactions. */
  readonly lanes: Lanes;
  /** Inside a caller's transaction; throws `invalid-argument` for what is none. */
  lanesWithin(tx: unknown): Lanes;
}

/**
 * A job with a key may have to wait: for a transaction that has enqueued one of its bucket and is still open, and for
 * a merge function whose statements start over. Where there are connections for it, jobs without one do not wait
 * with it.
 */
export interface Lanes {
  readonly plain: EnqueueLane;
  /** For calls that bring a job with a dedup key. */
  readonly keyed: EnqueueLane;
}

/** One statement at a time, whatever it does. */
export function oneLane(lane: EnqueueLane): Lanes {
  return { plain: lane, keyed: lane };
}

/** Whatever goes wrong there has ended the caller's transaction: nothing can be shared, isolated or repeated. */
export function transactionLanes(send: Send): Lanes {
  return oneLane(new EnqueueLane({ send, coalesces: () => false, isolates: () => false }));
}

/** A transaction that is still open holds the key of some job. */
const lockNotAvailable = "55P03";

/** Whether one job may be to blame for a failed statement; most others are the whole database's. */
export function mayBeOneJobs(error: unknown): boolean {
  if (!isVenturiError(error)) return true;
  if (error.code === "merge" || error.sqlState === lockNotAvailable) return true;
  if (error.isRetryable || error.code === "not-migrated" || error.code === "closed") return false;
  return error.sqlState === undefined || !connectionStates.test(error.sqlState);
}

/** Wrong credentials, no such database, a transaction in the wrong state. */
const connectionStates = /^(28|3D|25)/;
