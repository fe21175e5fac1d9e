import type { Turn } from "./claim-plan.ts";
import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import type { Logger } from "./logger.ts";
import type { ReadJournalRequest } from "./operator-store.ts";
import type { Port, Signalled } from "./port.ts";
import type { Priority } from "./priority.ts";
import type { Recovery, StaleClaim } from "./recovery.ts";
import type { Settlement } from "./settlement.ts";

/** A store's own name for one worker session; it fences claims together with the run count. */
export type WorkerId = number;

/** What a worker publishes about itself, so that others judge it by its own settings. */
export interface WorkerRegistration {
  readonly name: string;
  readonly kinds: readonly string[];
  /** The longest time this worker sleeps without looking for jobs, in milliseconds. */
  readonly pollMaxMs: number;
  /** Silence after which it is presumed dead, in milliseconds. */
  readonly workerTimeoutMs: number;
  /** The shortest lease any of its claims may carry, in milliseconds. */
  readonly shortestLeaseMs: number;
}

export interface ClaimKind {
  readonly kind: string;
  /** At most this many jobs of the kind in this claim (what its cap leaves free), at least 1. */
  readonly limit: number;
  /** The lease for jobs that carry none of their own, in milliseconds. */
  readonly leaseMs: number;
  /** How many failures make the job dead; stored with the claim, for whoever recovers it. Null: never. */
  readonly backstop: number | null;
}

export interface ClaimRequest extends Signalled {
  readonly worker: WorkerId;
  /** How many jobs at most, at least 1. */
  readonly limit: number;
  readonly kinds: readonly ClaimKind[];
  /** Where the priority rotation stands; see `planClaim`. */
  readonly turn: Turn;
  /** Jobs that must not be claimed now, because this process still runs or settles them. */
  readonly exclude?: readonly JobId[];
  /**
   * The new job that a notification named, if this worker has heard of nothing else since its last claim. A store that
   * knows that the last claim left nothing may look for this job alone. Any store may ignore it.
   */
  readonly hint?: JobId;
}

export interface ClaimedJob {
  readonly id: JobId;
  readonly kind: string;
  readonly priority: Priority;
  /** JSON text. */
  readonly payload: string;
  /** JSON text of the stored carry; null: the initial carry. */
  readonly carry: string | null;
  readonly headers: Headers | null;
  /** How often the job has been claimed, this claim included. With the worker's id it fences all later calls. */
  readonly runCount: number;
  /** Failures before this run. */
  readonly failureCount: number;
  /** Milliseconds between the moment the job was due and the claim, by the store's clock. */
  readonly latencyMs: number;
  /** The lease this claim holds, in milliseconds from the claim. */
  readonly leaseMs: number;
  /** When the claim ends by the store's clock. */
  readonly leaseExpiresAt: Date;
}

export interface ClaimResult {
  /** In priority order, then arrival. */
  readonly jobs: readonly ClaimedJob[];
  /**
   * After a claim that brought fewer jobs than its limit: milliseconds until the next job of these kinds is due; null:
   * there is none. It may leave out a job that stands behind due jobs of its kind and priority for which there was no
   * room: that job waits for room, not for its time.
   */
  readonly waitMs: number | null;
  /**
   * More jobs may be due: another transaction holds their rows, or the store has not looked everywhere because that has
   * become slow. Look again soon.
   */
  readonly blocked: boolean;
}

/**
 * What became of one settlement.
 *
 * - `applied`: this call has written it.
 * - `done`: an earlier call for the same run has written it; the answer to that call was lost.
 * - `busy`: another transaction has locked the row; try again.
 * - `lost`: the run no longer holds its claim; nothing was written.
 */
export type SettleVerdict = "applied" | "done" | "busy" | "lost";

export interface SettleRequest extends Signalled {
  readonly worker: WorkerId;
  readonly settlements: readonly Settlement[];
}

export interface ExtendLeaseRequest extends Signalled {
  readonly worker: WorkerId;
  readonly extensions: readonly (ClaimRef & {
    /** From the store's now until the new end of the lease, in milliseconds; a lease is never shortened. */
    readonly leaseMs: number;
  })[];
}

export type ExtendLeaseResult =
  | {
      readonly verdict: "applied";
      readonly leaseExpiresAt: Date;
      /** From the store's now until then, in milliseconds. */
      readonly leaseMs: number;
    }
  | { readonly verdict: "busy" | "lost" };

/** The run that ends in its handler's transaction. */
export interface CompleteRequest extends ClaimRef {
  readonly worker: WorkerId;
  readonly note: string | null;
  /** JSON text. */
  readonly attachment: string | null;
}

/** Names one claim of a job. */
export interface ClaimRef {
  readonly jobId: JobId;
  readonly runCount: number;
}

/** A claim to undo. */
export interface UndoneClaim extends ClaimRef {
  /**
   * When the claim ends, as its answer said; absent: unknown. A hand-back lowers the run count again, so the run count
   * alone does not name the claim: a hand-back that was never answered may be carried out late, after the worker has
   * claimed the job anew, and must leave the new claim alone.
   */
  readonly leaseExpiresAt?: Date | undefined;
}

export interface HandBackRequest extends Signalled {
  readonly worker: WorkerId;
  readonly claims: readonly UndoneClaim[];
}

/** A worker whose own row says that it should have been heard of by now. */
export interface SilentWorker {
  readonly worker: WorkerId;
  readonly name: string;
  readonly silentMs: number;
  /** Whether it has been silent for its whole `workerTimeout`. If not it is only suspect: only its overdue claims are stale. */
  readonly dead: boolean;
  /**
   * Its own `workerTimeout`, in milliseconds. An observer that has just started, or has had an outage, waits that long
   * before it takes the claims, so that the silent worker can beat first. Absent: the observer's own timeout counts.
   */
  readonly timeoutMs?: number;
}

export interface BeatResult {
  readonly silent: readonly SilentWorker[];
  /** Milliseconds until the next other worker becomes suspect or dead if it stays silent; null: there is none. */
  readonly nextSuspectMs: number | null;
  /**
   * How many other workers are alive: those heard of within their own timeout and within five minutes (a timeout may be
   * infinite). They share the slow search for orphans. Absent: unknown; each worker then searches as if it were alone.
   */
  readonly others?: number;
  /**
   * How long the database server has been up, in milliseconds. After a restart every worker can beat before anyone
   * recovers its claims. Negative: the server's clock has been set back.
   */
  readonly serverUpMs: number;
  /**
   * The store's clock, in epoch milliseconds. When it has been set forward every worker looks silent, and can beat
   * before anyone recovers its claims. Absent: the clock is never set.
   */
  readonly clockMs?: number;
}

export interface FindStaleRequest extends Signalled {
  /** Silent workers whose claims are wanted: all of a worker's claims, or only the overdue ones. */
  readonly holders: readonly { readonly worker: WorkerId; readonly overdueOnly: boolean }[];
  /**
   * Whether to find orphans as well. A claim is an orphan if
   *
   * - its worker has no row; or
   * - its worker has ended, and the claim is overdue or the worker has been silent for its own timeout; or
   * - it has been overdue for a minute: a live worker deals with its own claims sooner.
   */
  readonly orphans: boolean;
  readonly limit: number;
}

export interface RecoverRequest extends Signalled {
  readonly recoveries: readonly Recovery[];
}

export interface WorkerStore<Tx = never> extends Port {
  /** Never present at run time: carries the type of the transactions the store can settle in. */
  readonly "~tx"?: (tx: Tx) => void;

  /**
   * Opens a worker session. Rejects with `not-migrated` where the schema is missing. The logger is told if a kind cannot
   * be claimed for now, and why.
   */
  startWorker(
    request: WorkerRegistration & Signalled & { readonly logger?: Logger | undefined },
  ): Promise<{ readonly worker: WorkerId }>;
  /**
   * Ends a session cleanly: nobody waits for it or wakes it any more. Its claims must have been settled or handed back.
   * A beat that is still under way, even one whose caller has stopped waiting, must not open the session again.
   */
  stopWorker(request: { readonly worker: WorkerId } & Signalled): Promise<void>;

  /**
   * Claims up to `limit` due jobs, each held by nobody else. An empty claim changes nothing. A claim whose caller has
   * stopped waiting may still be carried out: then the session holds jobs that somebody has to find or recover.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Ends runs. Each settlement applies only if (job, worker, run count) still holds the claim. Verdicts come in order. */
  settle(request: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }>;
  /**
   * Undoes claims whose handler never started: each job is pending again, with the run count it had before, and without
   * a journal entry. Where a claim gives the end of its lease, it is undone only if it still ends then (to within 2 ms).
   */
  handBack(request: HandBackRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }>;

  /** Extends leases whose claims are still held. Results come in order. */
  extendLease(
    request: ExtendLeaseRequest,
  ): Promise<{ readonly results: readonly ExtendLeaseResult[] }>;
  /**
   * Completes a run inside the caller's own transaction. Rejects with `claim-lost` if the claim is no longer held; that
   * transaction can then not be committed. Absent where `capabilities.transactions` is false.
   */
  complete?(tx: Tx, request: CompleteRequest): Promise<void>;

  /** Publishes that the session is alive (restoring its row if it was removed), and returns which workers have gone silent. */
  beat(
    request: WorkerRegistration & { readonly worker: WorkerId } & Signalled,
  ): Promise<BeatResult>;
  /** Finds the claims of silent workers, the lease that ends first coming first. */
  findStale(request: FindStaleRequest): Promise<{ readonly claims: readonly StaleClaim[] }>;
  /**
   * Recovers stale claims: each job is pending again, or dead. A recovery applies only if (job, holder, run count) still
   * holds the claim and the claim is still stale, that is, overdue or its holder dead. Locked rows are passed over.
   * Returns which recoveries applied, in order.
   */
  recover(request: RecoverRequest): Promise<{ readonly applied: readonly boolean[] }>;

  /** The journal of one job in order; with `limit`, its latest entries. */
  readJournal(request: ReadJournalRequest): Promise<{ readonly entries: readonly JournalEntry[] }>;
}
