import { type Instant, toDate } from "./duration.ts";
import { invalidArgument, readArgument, show } from "./errors.ts";
import { isJobId, type JobId } from "./job-id.ts";
import type { JobRecord, JobStatus } from "./journal.ts";
import { jobStatuses } from "./journal.ts";
import type { JobQuery } from "./store.ts";

/**
 * Which jobs to list, newest first by id. A job is listed if it matches every member that is given; an empty filter lists
 * all jobs. Nothing matches an empty array.
 */
export interface JobFilter {
  /** Only jobs of this status, or of one of these. */
  readonly status?: JobStatus | readonly JobStatus[] | undefined;
  /** Only jobs of this kind, or of one of these. */
  readonly kind?: string | readonly string[] | undefined;
  /** Only jobs with one of these ids. */
  readonly ids?: readonly JobId[] | undefined;
  /** Ended at or after this instant. */
  readonly finishedSince?: Instant | undefined;
  /** Ended before this instant. */
  readonly finishedUntil?: Instant | undefined;
  /**
   * How many jobs a page holds, 1 to 1,000.
   * @defaultValue 100
   */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before; absent: the first page. */
  readonly cursor?: string | undefined;
  /** Ends the waiting: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** One page of jobs. The last page has no `nextCursor`. */
export interface JobPage {
  readonly jobs: readonly JobRecord[];
  readonly nextCursor?: string;
}

const defaultLimit = 100;
const maxLimit = 1000;
const known = new Set<string>([
  "status",
  "kind",
  "ids",
  "finishedSince",
  "finishedUntil",
  "limit",
  "cursor",
  "signal",
]);

/** Validates a filter before any store sees it, so that all stores agree; throws `invalid-argument`. */
export function resolveJobFilter(filter: JobFilter = {}): JobQuery {
  return readArgument("filter", () => checkJobFilter(filter));
}

function checkJobFilter(filter: JobFilter): JobQuery {
  if (typeof filter !== "object" || filter === null || Array.isArray(filter)) {
    throw invalidArgument(
      "filter",
      "must be an object",
      "pass { status, kind, ids, finishedSince, finishedUntil, limit, cursor }",
    );
  }
  for (const name of Object.keys(filter)) {
    if (!known.has(name))
      throw invalidArgument(
        `filter.${name}`,
        "is not a member of a job filter",
        `use one of ${[...known].join(", ")}`,
      );
  }
  const { limit = defaultLimit } = filter;
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw invalidArgument(
      "filter.limit",
      `must be a whole number from 1 to ${maxLimit}`,
      "read further pages with the cursor",
    );
  }
  return {
    statuses: list("filter.status", filter.status, isStatus, `one of ${jobStatuses.join(", ")}`),
    kinds: list("filter.kind", filter.kind, isText, "a kind's name"),
    ids: list("filter.ids", filter.ids, isJobId, "a job id"),
    finishedSince: instant("filter.finishedSince", filter.finishedSince),
    finishedUntil: instant("filter.finishedUntil", filter.finishedUntil),
    limit,
    before: filter.cursor === undefined ? null : readCursor(filter.cursor),
    signal: filter.signal,
  };
}

/** Cuts `limit + 1` rows to a page: the extra row only says that there is another. */
export function toJobPage(rows: readonly JobRecord[], limit: number): JobPage {
  const jobs = rows.slice(0, limit);
  const last = jobs.at(-1);
  return rows.length > limit && last !== undefined
    ? { jobs, nextCursor: `${cursorVersion}${last.id}` }
    : { jobs };
}

const cursorVersion = "1.";

function readCursor(cursor: unknown): JobId {
  const id =
    typeof cursor === "string" && cursor.startsWith(cursorVersion)
      ? cursor.slice(cursorVersion.length)
      : undefined;
  if (id === undefined || !isJobId(id)) {
    throw invalidArgument(
      "filter.cursor",
      "is not a cursor that `jobs` returned",
      "pass `nextCursor` of the page before, unchanged",
    );
  }
  return id;
}

function list<T>(
  name: string,
  value: unknown,
  is: (item: unknown) => item is T,
  what: string,
): readonly T[] | null {
  if (value === undefined) return null;
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  for (const item of items) {
    if (is(item)) continue;
    throw invalidArgument(
      name,
      `holds something else (got ${show(item)})`,
      `pass ${what}, or an array of them`,
    );
  }
  return items as readonly T[];
}

function isStatus(value: unknown): value is JobStatus {
  return (jobStatuses as readonly unknown[]).includes(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && !value.includes("\u0000");
}

function instant(name: string, value: Instant | undefined): Date | null {
  return value === undefined ? null : toDate(value, name);
}
