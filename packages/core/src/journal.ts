import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { Priority } from "./priority.ts";

/** Where a job stands. `completed`, `dead` and `cancelled` are ends; a paused or retried job is `pending`. */
export type JobStatus = "pending" | "claimed" | "completed" | "dead" | "cancelled";

/** All statuses. */
export const jobStatuses: readonly JobStatus[] = Object.freeze([
  "pending",
  "claimed",
  "completed",
  "dead",
  "cancelled",
]);

/** How a job can end. */
export type EndStatus = Extract<JobStatus, "completed" | "dead" | "cancelled">;

/** All statuses in which a job has ended. */
export const endStatuses: readonly EndStatus[] = Object.freeze(["completed", "dead", "cancelled"]);

/**
 * What a journal entry records. `completed`, `paused`, `retried`, `dead`, `stale-recovered` and `released` end a
 * run; `merged`, `cancelled` and `requeued` happen between runs.
 */
export type JournalOutcome =
  | "completed"
  | "paused"
  | "retried"
  | "dead"
  | "stale-recovered"
  | "released"
  | "merged"
  | "cancelled"
  | "requeued";

/** All outcomes. */
export const journalOutcomes: readonly JournalOutcome[] = Object.freeze([
  "completed",
  "paused",
  "retried",
  "dead",
  "stale-recovered",
  "released",
  "merged",
  "cancelled",
  "requeued",
]);

/** A job as it stands now, read back from the store. */
export interface JobRecord {
  readonly id: JobId;
  readonly kind: string;
  readonly status: JobStatus;
  readonly priority: Priority;
  /** The input that was enqueued, as JSON holds it. */
  readonly payload: unknown;
  /** What the last run that paused or was retried left behind; null: the initial carry, or the job has completed. */
  readonly carry: unknown;
  /** Empty where none were given. */
  readonly headers: Headers;
  /** How often the job has been started, a run that is under way included. */
  readonly runCount: number;
  /** Failures since the job was enqueued or last requeued. */
  readonly failureCount: number;
  /** Null: it has none. */
  readonly dedupKey: string | null;
  readonly createdAt: Date;
  /** When the job is, or was, due; null when it has ended. */
  readonly visibleAt: Date | null;
  /** When the job ended; null while it has not. */
  readonly finishedAt: Date | null;
  /** The name of the worker that holds it; null when none does. */
  readonly claimedBy: string | null;
  /** When the lease of that worker ends; null when none holds it. */
  readonly leaseExpiresAt: Date | null;
}

/** The error that ended a run. */
export interface FailureDetail {
  readonly name: string;
  readonly code?: string;
  readonly stack?: string;
}

/** One thing that happened to a job. Entries never change, except that a cleanup may forget the name of the worker. */
export interface JournalEntry {
  readonly jobId: JobId;
  readonly kind: string;
  /** The run that ended; of an entry between runs, the number of runs so far. */
  readonly runNo: number;
  readonly outcome: JournalOutcome;
  /** The outcome's note or the error's message. */
  readonly note: string | null;
  /** What the run attached; null where it attached nothing. */
  readonly attachment: unknown;
  /** Only of failures. */
  readonly detail: FailureDetail | null;
  /** The name of the worker; null between runs and where the worker's row has been cleaned up. */
  readonly worker: string | null;
  /** When the run was claimed; null between runs. */
  readonly startedAt: Date | null;
  readonly recordedAt: Date;
}

/** Numbers by kind, on an object without a prototype; kinds with nothing to count are absent. */
export type CountsByKind = Readonly<Record<string, number>>;

/** The queue at one moment. */
export interface Stats {
  /** All pending jobs. */
  readonly pendingByKind: CountsByKind;
  /** The pending jobs that are not due yet. */
  readonly scheduledByKind: CountsByKind;
  /** How long the longest-waiting due job has been due, in milliseconds. */
  readonly oldestPendingAgeMsByKind: CountsByKind;
  /** Jobs that workers hold: those whose handlers run, and those that were claimed ahead and wait for a slot. */
  readonly claimed: number;
  readonly deadByKind: CountsByKind;
  /** Workers that are alive. */
  readonly workers: number;
}
