import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { ConstantMerge } from "./merge.ts";
import type { MergeChoice } from "./merge-plan.ts";
import type { MergeCandidate } from "./pending-row.ts";
import type { Port, Signalled } from "./port.ts";
import type { Priority } from "./priority.ts";

/** One job to store. The producer has made its id and validated its payload. */
export interface EnqueueJob {
  readonly id: JobId;
  /** Whether the caller chose the id, so that another call with it may be under way. It bounds the wait for that call. */
  readonly repeatable?: boolean;
  readonly kind: string;
  /** JSON text of the caller's input. */
  readonly payload: string;
  readonly priority: Priority;
  /** Absent or null: never coalesced. */
  readonly dedupKey?: string | null;
  /** What happens when a pending job of the same kind and key exists; only with a key. */
  readonly merge?: ConstantMerge;
  /** Milliseconds from the store's clock until the job is due; absent: due at once. Never with `runAt`. */
  readonly delayMs?: number;
  /** Absolute due time in epoch milliseconds. */
  readonly runAt?: number;
  /** The task's own lease in milliseconds, evaluated at enqueue; absent: the claim's. */
  readonly leaseMs?: number | null;
  readonly headers?: Headers | null;
  /** What the task's merge function has decided; it goes before `merge`. Only with a key. */
  readonly decision?: MergeChoice;
}

/**
 * What became of one enqueued job.
 *
 * - `enqueued`: it is a job of its own.
 * - `kept`, `replaced`, `merged`: it was merged into a pending job, by `keep`, `replace` or `with`.
 * - `repeated`: an earlier call has stored a job with this id, or merged it.
 */
export type EnqueueOutcome = "enqueued" | "kept" | "replaced" | "merged" | "repeated";

/** The jobs of one call: all of them are stored, or none. */
export interface EnqueueRequest extends Signalled {
  readonly jobs: readonly EnqueueJob[];
}

/** The answer for one job of a call. */
export interface EnqueuedJob {
  /** The job's own id, or that of the pending job it was merged into. */
  readonly id: JobId;
  readonly outcome: EnqueueOutcome;
}

/** What producers ask of a store. */
export interface ProducerStore extends Port {
  /**
   * Stores all jobs or none, in the order given, and wakes workers if any of them is due soon.
   *
   * Rejects with `id-conflict` when an id belongs to a job of another kind or key; with a retryable `merge` when the
   * pending job that a decision is about has changed since it was read (the error's `ids` are the ids of this request
   * that earlier calls have stored or merged); and with `database` when the statement failed.
   */
  enqueue(request: EnqueueRequest): Promise<{ readonly jobs: readonly EnqueuedJob[] }>;
  /** For merge functions: the pending jobs of each key, in order of arrival. Locks nothing. */
  findCandidates(request: FindCandidatesRequest): Promise<FindCandidatesResult>;
}

/** The keys whose pending jobs are wanted. */
export interface FindCandidatesRequest extends Signalled {
  readonly keys: readonly {
    readonly kind: string;
    readonly dedupKey: string;
    /** How many at most; absent: all. */
    readonly limit?: number;
    /** Ids of jobs of this key that are about to be stored: the answer says which of them earlier calls have brought in. */
    readonly ids?: readonly JobId[];
  }[];
  /** After a lost race: look only when those who are merging into these keys now have ended. */
  readonly wait?: boolean;
}

/** The pending jobs of the keys that were asked about. */
export interface FindCandidatesResult {
  /** The pending jobs of each key, in the order of the keys. */
  readonly candidates: readonly (readonly MergeCandidate[])[];
  /**
   * Those of the requested `ids` that an earlier call has brought in, whatever has become of them since: storing them
   * again changes nothing. Absent: the store does not look. Then `enqueue` names them in the error with which it refuses
   * a decision; a transaction does not survive that error.
   */
  readonly known?: readonly JobId[];
}
