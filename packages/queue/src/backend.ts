import { isVenturiError } from "@venturi/core";
import { EnqueueLane, type Send } from "./enqueue-lane.ts";

/** What a queue enqueues through. */
export interface Backend {
  /** Outside of everybody's transactions. */
  readonly lane: EnqueueLane;
  /** Inside a caller's transaction; throws `invalid-argument` for what is none. */
  laneWithin(tx: unknown): EnqueueLane;
}

/** Whatever goes wrong there has ended the caller's transaction: nothing can be shared, isolated or repeated. */
export function transactionLane(send: Send): EnqueueLane {
  return new EnqueueLane({ send, coalesces: () => false, isolates: () => false });
}

/** Whether one job may be to blame for a failed statement; most others are the whole database's. */
export function mayBeOneJobs(error: unknown): boolean {
  if (!isVenturiError(error)) return true;
  if (error.isRetryable || error.code === "not-migrated" || error.code === "closed") return false;
  return error.sqlState === undefined || !connectionStates.test(error.sqlState);
}

/** Wrong credentials, no such database, a transaction in the wrong state. */
const connectionStates = /^(28|3D|25)/;
