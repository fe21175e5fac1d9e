import type { JobId } from "@venturi/core";

/** One log record names no more jobs than this, however many it is about. */
const mostLoggedIds = 10;

/** The ids of jobs that a log record names. */
export function loggedIds(jobIds: readonly JobId[]): readonly JobId[] {
  return jobIds.slice(0, mostLoggedIds);
}
