import type { JobId } from "./job-id.ts";
import type { EndStatus, JobRecord, JobStatus, JournalEntry, Stats } from "./journal.ts";
import type { Port, Signalled } from "./port.ts";

export interface ReadJournalRequest extends Signalled {
  readonly jobId: JobId;
  /** How many entries at most: the latest, still in order. Absent: all. */
  readonly limit?: number | undefined;
}

/** A validated filter; see `resolveJobFilter`. */
export interface JobQuery extends Signalled {
  readonly statuses: readonly JobStatus[] | null;
  readonly kinds: readonly string[] | null;
  readonly ids: readonly JobId[] | null;
  /** Inclusive. */
  readonly finishedSince: Date | null;
  /** Exclusive. */
  readonly finishedUntil: Date | null;
  readonly limit: number;
  /** Only jobs older than this id. */
  readonly before: JobId | null;
}

/** What operators ask of a store: to look up jobs, to count them, to clean up, and to change single jobs by hand. */
export interface OperatorStore extends Port {
  /** The job as it stands now; null when there is none with this id. */
  findJob(request: JobRequest): Promise<{ readonly job: JobRecord | null }>;
  /** Newest first by id, at most `limit`. */
  queryJobs(query: JobQuery): Promise<{ readonly jobs: readonly JobRecord[] }>;
  /** The journal of one job in order; with `limit`, its latest entries. */
  readJournal(request: ReadJournalRequest): Promise<{ readonly entries: readonly JournalEntry[] }>;
  /** One consistent snapshot; its cost does not grow with completed jobs. */
  stats(request: Signalled): Promise<{ readonly stats: Stats }>;
  /** Deletes ended jobs with their journals, in bounded batches; safe from several processes at once. */
  cleanup(request: CleanupRequest): Promise<{ readonly deleted: number }>;
  /** Puts a dead job back: pending, due now, its failures forgotten. */
  retry(request: JobRequest): Promise<{ readonly applied: boolean }>;
  /** Ends a pending job as cancelled. */
  cancel(request: JobRequest): Promise<{ readonly applied: boolean }>;
}

export interface JobRequest extends Signalled {
  readonly id: JobId;
}

export interface CleanupRequest extends Signalled {
  /** Exclusive. */
  readonly finishedBefore: Date;
  /** Null: all kinds. */
  readonly kind: string | null;
  readonly statuses: readonly EndStatus[];
}
