import { type Instant, toDate } from "./duration.ts";
import { invalidArgument, readArgument, show } from "./errors.ts";
import { type EndStatus, endStatuses } from "./journal.ts";
import { toKind } from "./kind.ts";
import type { CleanupRequest } from "./store.ts";

/** Which ended jobs to delete, with their journals. */
export interface CleanupFilter {
  /** Only jobs that ended before this instant. */
  readonly finishedBefore: Instant;
  /**
   * Only jobs of this kind.
   * @defaultValue all kinds
   */
  readonly kind?: string | undefined;
  /**
   * Only jobs that ended in this way: `"completed"`, `"dead"`, `"cancelled"`, or an array of them.
   * @defaultValue all three
   */
  readonly status?: EndStatus | readonly EndStatus[] | undefined;
  /** Stops the cleanup between two batches. What has been deleted by then stays deleted. */
  readonly signal?: AbortSignal | undefined;
}

const members = ["finishedBefore", "kind", "status", "signal"];

/** Validates a filter before any store sees it, so that all stores agree; throws `invalid-argument`. */
export function resolveCleanupFilter(filter: CleanupFilter): CleanupRequest {
  return readArgument("filter", () => checkCleanupFilter(filter));
}

function checkCleanupFilter(filter: CleanupFilter): CleanupRequest {
  if (typeof filter !== "object" || filter === null || Array.isArray(filter)) {
    throw invalidArgument("filter", "must be an object", `pass { ${members.join(", ")} }`);
  }
  for (const name of Object.keys(filter)) {
    if (members.includes(name)) continue;
    throw invalidArgument(
      `filter.${name}`,
      "is not a member of a cleanup filter",
      `use ${members.join(", ")}`,
    );
  }
  const { finishedBefore, kind, status, signal } = filter;
  if (signal !== undefined && typeof signal?.throwIfAborted !== "function") {
    throw invalidArgument("filter.signal", "is not an AbortSignal", "pass controller.signal");
  }
  return {
    finishedBefore: toDate(finishedBefore, "filter.finishedBefore"),
    kind: kind === undefined ? null : toKind(kind, "filter.kind"),
    statuses: status === undefined ? endStatuses : toEndStatuses(status),
    signal,
  };
}

function toEndStatuses(status: unknown): readonly EndStatus[] {
  const statuses: readonly unknown[] = Array.isArray(status) ? status : [status];
  for (const one of statuses) {
    if ((endStatuses as readonly unknown[]).includes(one)) continue;
    throw invalidArgument(
      "filter.status",
      `is no way in which a job ends (got ${show(one)})`,
      `pass one of ${endStatuses.join(", ")}, or an array of them`,
    );
  }
  return [...new Set(statuses)] as readonly EndStatus[];
}
