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
  /** Whether the id is the caller's own, so that another call with it may be under way; bounds the wait for that one. */
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
  /** What the task's merge function has decided, instead of `merge`; only with a key. */
  readonly decision?: MergeChoice;
}

/**
 * What became of one enqueued job: a row of its own, merged into a pending one, or a repeat of an id that an
 * earlier call already brought in.
 */
export type EnqueueOutcome = "enqueued" | "kept" | "replaced" | "merged" | "repeated";

export interface EnqueueRequest extends Signalled {
  readonly jobs: readonly EnqueueJob[];
}

export interface EnqueuedJob {
  /** The surviving job: the request's own id, or that of the job it was merged into. */
  readonly id: JobId;
  readonly outcome: EnqueueOutcome;
}

export interface ProducerStore extends Port {
  /**
   * Stores all jobs or none, in the order given, and wakes workers if any is due soon.
   *
   * Throws `VenturiError` `id-conflict` when an id belongs to another kind or key, `merge` with `isRetryable` when
   * the pending job that a decision is about has changed since it was read (its `ids` are those of the request that
   * earlier calls brought in), and `database` when the statement failed.
   */
  enqueue(request: EnqueueRequest): Promise<{ readonly jobs: readonly EnqueuedJob[] }>;
  /** For merge functions: the pending jobs of each key, first come first. Locks nothing. */
  findCandidates(request: FindCandidatesRequest): Promise<FindCandidatesResult>;
}

export interface FindCandidatesRequest extends Signalled {
  readonly keys: readonly {
    readonly kind: string;
    readonly dedupKey: string;
    /** How many at most; absent: all. */
    readonly limit?: number;
    /** Jobs of this key that are about to be stored: which of them are known is asked as well. */
    readonly ids?: readonly JobId[];
  }[];
  /** After a lost race: looks once those who are merging into these keys at the moment have ended. */
  readonly wait?: boolean;
}

export interface FindCandidatesResult {
  /** For each key in order: its pending jobs. */
  readonly candidates: readonly (readonly MergeCandidate[])[];
  /**
   * Of the `ids` that were asked about, those that an earlier call brought in, whatever has become of them: storing
   * them again changes nothing. Absent: the store does not look; then `enqueue` says so, in the error that it refuses
   * a decision with, which a transaction does not survive.
   */
  readonly known?: readonly JobId[];
}
