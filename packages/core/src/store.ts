import type { Turn } from "./claim-plan.ts";
import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { EndStatus, JobRecord, JobStatus, JournalEntry, Stats } from "./journal.ts";
import type { Logger } from "./logger.ts";
import type { Port, Signalled } from "./port.ts";
import type { Priority } from "./priority.ts";
import type { ProducerStore } from "./producer-store.ts";
import type { Recovery, StaleClaim } from "./recovery.ts";
import type { Settlement } from "./settlement.ts";

/**
 * The ports: what a storage adapter implements and what queue and worker call.
 *
 * Every verb is shaped for batches: one call is one round trip for many jobs, requests and results are objects,
 * so that a field can be added without breaking an adapter. Payloads, carries and attachments cross the ports as
 * JSON text: a store keeps and returns them, it never looks inside. Every instant and every delay is measured by
 * the store's own clock; no port takes "now" from its caller. Whoever calls may stop waiting: see {@link Signalled}.
 */
export { PORT_VERSION, type Signalled, type StoreCapabilities } from "./port.ts";
export type {
  EnqueuedJob,
  EnqueueJob,
  EnqueueOutcome,
  EnqueueRequest,
  FindCandidatesRequest,
  FindCandidatesResult,
  ProducerStore,
} from "./producer-store.ts";

// ── working ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** A store's own name for one worker session; it fences claims together with the run count. */
export type WorkerId = number;

/** What a worker publishes about itself, so that others judge it by its own settings. */
export interface WorkerRegistration {
  readonly name: string;
  readonly kinds: readonly string[];
  /** The longest this worker sleeps without looking, in milliseconds. */
  readonly pollMaxMs: number;
  /** Silence after which it is presumed dead, in milliseconds. */
  readonly workerTimeoutMs: number;
  /** The shortest lease any of its claims may carry, in milliseconds. */
  readonly shortestLeaseMs: number;
}

export interface ClaimKind {
  readonly kind: string;
  /** At most this many of the kind in this claim (what its cap leaves free), at least 1. */
  readonly limit: number;
  /** The lease for jobs that carry none of their own, in milliseconds. */
  readonly leaseMs: number;
  /** Written with the claim, so that whoever recovers it obeys it; null: never. */
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
   * The new job that a notification named, where that is all that this worker has heard of since its last claim. A
   * store which knows that the last claim left nothing may look for this job alone; any store may ignore it.
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
  /** This claim included: the fence of everything that follows. */
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
   * After a claim that came back short: milliseconds until the soonest job of the kinds asked for is due; null: none. A
   * job behind others of its kind and priority that are due, and had no room, may be left out: time is not what it lacks.
   */
  readonly waitMs: number | null;
  /**
   * There may be more that is due: another transaction holds its row, or the store has not looked everywhere, where
   * that has become dear. Look again soon.
   */
  readonly blocked: boolean;
}

/**
 * What became of one settlement.
 *
 * `applied`: by this call. `done`: by an earlier call of this very run, whose reply was lost. `busy`: the row is
 * locked by another transaction, try again. `lost`: the claim is no longer held, nothing was written.
 */
export type SettleVerdict = "applied" | "done" | "busy" | "lost";

export interface SettleRequest extends Signalled {
  readonly worker: WorkerId;
  readonly settlements: readonly Settlement[];
}

export interface ExtendLeaseRequest extends Signalled {
  readonly worker: WorkerId;
  readonly extensions: readonly (ClaimRef & {
    /** From the store's clock, in milliseconds; a lease is never shortened. */
    readonly leaseMs: number;
  })[];
}

export type ExtendLeaseResult =
  | {
      readonly verdict: "applied";
      readonly leaseExpiresAt: Date;
      /** From the store's clock until then, in milliseconds. */
      readonly leaseMs: number;
    }
  | { readonly verdict: "busy" | "lost" };

export interface CompleteRequest extends ClaimRef {
  readonly worker: WorkerId;
  readonly note: string | null;
  /** JSON text. */
  readonly attachment: string | null;
}

export interface ClaimRef {
  readonly jobId: JobId;
  readonly runCount: number;
}

export interface UndoneClaim extends ClaimRef {
  /**
   * As the claim's answer gave it, since a hand-back takes the run count back: one that nobody answered may be carried
   * out when the worker has claimed the job once more, and must leave that claim alone. Absent: unknown.
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
  /** Silent for its whole `workerTimeout`; otherwise only suspect, and only its overdue claims are stale. */
  readonly dead: boolean;
  /**
   * Its own `workerTimeout`, in milliseconds: whoever has just started, or had an outage, waits as long before taking
   * its claims, so that it can beat before. Absent: as long as the observer's own.
   */
  readonly timeoutMs?: number;
}

export interface BeatResult {
  readonly silent: readonly SilentWorker[];
  /** Milliseconds until the next live worker becomes suspect or dead if it stays silent; null: there is no other. */
  readonly nextSuspectMs: number | null;
  /**
   * How many other workers live: they share the slow looks for orphans. Those count that have been heard of within
   * their timeout and within five minutes, since a timeout may be endless. Absent: unknown, each looks as if alone.
   */
  readonly others?: number;
  /**
   * How long the database server has been up, in milliseconds: after an outage everyone beats before anyone recovers.
   * Negative: its clock has been set back.
   */
  readonly serverUpMs: number;
  /**
   * The store's clock, in epoch milliseconds: where it was set forward everyone looks silent, and beats before anyone
   * recovers. Absent: nobody sets it.
   */
  readonly clockMs?: number;
}

export interface FindStaleRequest extends Signalled {
  /** Silent workers whose claims are looked for: all of them, or the overdue ones only. */
  readonly holders: readonly { readonly worker: WorkerId; readonly overdueOnly: boolean }[];
  /**
   * Also claims that nobody answers for: their worker has no row; or it has ended, and they are overdue or it has been
   * silent for its own timeout; or they have been overdue for a minute, in which a worker that lives deals with its own.
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
   * Opens a worker session; rejects with `not-migrated` where the schema is missing. The logger is told what keeps a
   * kind from being claimed for now.
   */
  startWorker(
    request: WorkerRegistration & Signalled & { readonly logger?: Logger | undefined },
  ): Promise<{ readonly worker: WorkerId }>;
  /**
   * Ends a session cleanly: it is no longer waited for or woken. Its claims must have been settled or handed back. A
   * beat that is under way, also one that nobody waits for any more, must not open the session again.
   */
  stopWorker(request: { readonly worker: WorkerId } & Signalled): Promise<void>;

  /**
   * Claims up to `limit` due jobs, each held by nobody else. An empty claim changes nothing. One that nobody waits for
   * any more may leave jobs to the session, which are theirs who look for them there or recover them.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Ends runs. Each settlement applies only where (job, worker, run count) still holds the claim; verdicts in order. */
  settle(request: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }>;
  /**
   * Undoes claims whose handler never started: pending, run count as before, no journal entry. Where the end of the
   * lease is given, only while the claim still ends then, to a millisecond or two.
   */
  handBack(request: HandBackRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }>;

  /** Moves the ends of leases while their claims are held; results in order. */
  extendLease(
    request: ExtendLeaseRequest,
  ): Promise<{ readonly results: readonly ExtendLeaseResult[] }>;
  /**
   * Completes a run inside the caller's own transaction. Rejects with `claim-lost` when the claim is no longer held,
   * and then that transaction cannot commit. Absent where `capabilities.transactions` is false.
   */
  complete?(tx: Tx, request: CompleteRequest): Promise<void>;

  /** Publishes that the session lives (restoring its row if it was removed) and returns who has gone silent. */
  beat(
    request: WorkerRegistration & { readonly worker: WorkerId } & Signalled,
  ): Promise<BeatResult>;
  /** Claims of silent workers, oldest lease first. */
  findStale(request: FindStaleRequest): Promise<{ readonly claims: readonly StaleClaim[] }>;
  /**
   * Re-pends or kills stale claims. Each applies only while (job, holder, run count) holds the claim and the claim
   * is still stale: overdue, or its holder dead. Locked rows are passed over. Returns which applied, in order.
   */
  recover(request: RecoverRequest): Promise<{ readonly applied: readonly boolean[] }>;

  /** The journal of one job in order; with `limit`, its latest entries. */
  readJournal(request: ReadJournalRequest): Promise<{ readonly entries: readonly JournalEntry[] }>;
}

/** Optional: a store that can tell workers that something became claimable. */
export interface Notifier {
  /**
   * Calls `onWake` on every notification, with the job that it names if it is about a single new one, and after every
   * (re)connection, since a notification may have been missed in between. Returns at once; connecting and reconnecting go on behind it until `close`.
   */
  listen(request: ListenRequest): Subscription;
}

export interface ListenRequest {
  readonly onWake: (hint?: JobId) => void;
  readonly logger?: Logger;
  /**
   * How often to make sure that the connection still lives, in milliseconds: a half-open one says nothing.
   * @defaultValue 5000
   */
  readonly probeMs?: number;
}

export interface Subscription {
  /** Resolves when the first connection listens; never rejects. */
  readonly listening: Promise<void>;
  close(): Promise<void>;
}

// ── operating ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ReadJournalRequest extends Signalled {
  readonly jobId: JobId;
  /** Only the latest entries, still in order. */
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

export interface OperatorStore extends Port {
  findJob(request: JobRequest): Promise<{ readonly job: JobRecord | null }>;
  /** Newest first by id, at most `limit`. */
  queryJobs(query: JobQuery): Promise<{ readonly jobs: readonly JobRecord[] }>;
  readJournal(request: ReadJournalRequest): Promise<{ readonly entries: readonly JournalEntry[] }>;
  /** One consistent snapshot; its cost does not grow with completed jobs. */
  stats(request: Signalled): Promise<{ readonly stats: Stats }>;
  /** Deletes ended jobs with their journals, in bounded batches; safe from several processes at once. */
  cleanup(request: CleanupRequest): Promise<{ readonly deleted: number }>;
  /** Puts a dead job back: due now, failures forgotten. */
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
  readonly kind: string | null;
  readonly statuses: readonly EndStatus[];
}

/** Everything an adapter can implement; `Tx` is the transaction that `within` and `ctx.complete` accept. */
export interface Store<Tx = never> extends ProducerStore, WorkerStore<Tx>, OperatorStore {
  /** A producer inside the caller's transaction; absent where `capabilities.transactions` is false. */
  within?(tx: Tx): ProducerStore;
}
