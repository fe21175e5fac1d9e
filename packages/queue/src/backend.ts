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
 * Merge functions take a statement more, and a key that many producers merge into makes their statements start over:
 * where there are connections for it, other jobs do not wait for that.
 */
export interface Lanes {
  readonly plain: EnqueueLane;
  /** For calls that bring a job whose merge function has to be asked. */
  readonly merging: EnqueueLane;
}

/** One statement at a time, whatever it does. */
export function oneLane(lane: EnqueueLane): Lanes {
  return { plain: lane, merging: lane };
}

/** Whatever goes wrong there has ended the caller's transaction: nothing can be shared, isolated or repeated. */
export function transactionLanes(send: Send): Lanes {
  return oneLane(new EnqueueLane({ send, coalesces: () => false, isolates: () => false }));
}

/** Whether one job may be to blame for a failed statement; most others are the whole database's. */
export function mayBeOneJobs(error: unknown): boolean {
  if (!isVenturiError(error)) return true;
  if (error.isRetryable || error.code === "not-migrated" || error.code === "closed") return false;
  return error.sqlState === undefined || !connectionStates.test(error.sqlState);
}

/** Wrong credentials, no such database, a transaction in the wrong state. */
const connectionStates = /^(28|3D|25)/;
