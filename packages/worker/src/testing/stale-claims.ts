import type { JobId, StaleClaim, WorkerId } from "@venturi/core";

/** A job id that ends in a name. */
export function idOf(name: string): JobId {
  return name.toUpperCase().padStart(26, "0");
}

/** An overdue claim of the job of that name, in its first run. */
export function staleClaim(
  name: string,
  holder: WorkerId,
  overrides: Partial<StaleClaim> = {},
): StaleClaim {
  const base = { kind: "k", payload: "{}", runCount: 1, failureCount: 0, backstop: 20 };
  return { jobId: idOf(name), ...base, holder, overdue: true, ...overrides };
}
