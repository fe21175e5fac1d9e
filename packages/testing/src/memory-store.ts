import {
  type BeatResult,
  type ClaimRequest,
  type ClaimResult,
  type CleanupRequest,
  checkMembers,
  type EnqueuedJob,
  type EnqueueRequest,
  type ExtendLeaseRequest,
  type ExtendLeaseResult,
  type FindCandidatesRequest,
  type FindCandidatesResult,
  type FindStaleRequest,
  type HandBackRequest,
  invalidArgument,
  type JobQuery,
  type JobRecord,
  type JobRequest,
  type JournalEntry,
  type Notifier,
  PORT_VERSION,
  type ReadJournalRequest,
  type RecoverRequest,
  readArgument,
  type SettleRequest,
  type SettleVerdict,
  type Signalled,
  type StaleClaim,
  type Stats,
  type Store,
  type StoreCapabilities,
  type Subscription,
  show,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type { Clock } from "./manual-clock.ts";
import { findCandidates, isKnown } from "./memory/candidates.ts";
import { claim } from "./memory/claiming.ts";
import { enqueue } from "./memory/enqueuing.ts";
import { beat, findStale, presentWorkers, startWorker, stopWorker } from "./memory/liveness.ts";
import { cancel, cleanup, queryJobs, readJournal, retry, stats } from "./memory/operating.ts";
import { toJobRecord } from "./memory/records.ts";
import { extendLease, handBack, recover, settle } from "./memory/settling.ts";
import { Tables } from "./memory/tables.ts";

/** How a store in memory is made. */
export interface MemoryStoreOptions {
  /**
   * The store's clock, such as a {@link ManualClock}.
   * @defaultValue the system's
   */
  readonly clock?: Clock | undefined;
}

/**
 * A store for tests. It keeps everything in the memory of one process, and behaves as the PostgreSQL store does.
 *
 * It has no transactions: it lacks `within` and `complete`, and its `capabilities` say so.
 *
 * @example
 * ```ts
 * const store = new MemoryStore({ clock: new ManualClock() });
 * const queue = new Queue(store);
 * const worker = new Worker(store).register(SendEmail, sendEmail);
 * ```
 */
export class MemoryStore implements Store<never>, Notifier {
  readonly portVersion = PORT_VERSION;
  readonly capabilities: StoreCapabilities = Object.freeze({
    transactions: false,
    notifications: true,
  });
  readonly #tables: Tables;
  readonly #startedAt: number;
  readonly #listeners = new Set<() => void>();

  /** Throws `invalid-argument` naming the option that is unknown or unacceptable. */
  constructor(options: MemoryStoreOptions = {}) {
    this.#tables = new Tables(readArgument("options", () => clockOf(options)));
    this.#startedAt = this.#tables.now();
  }

  /** Pauses a kind, as an operator does in a database: its jobs are not claimed. With `paused` false they are again. */
  pauseKind(kind: string, paused = true): void {
    if (paused) this.#tables.pausedKinds.add(kind);
    else this.#tables.pausedKinds.delete(kind);
  }

  // ── producing ──────────────────────────────────────────────────────────────────────────────────────────────────

  async enqueue({
    jobs,
    signal,
  }: EnqueueRequest): Promise<{ readonly jobs: readonly EnqueuedJob[] }> {
    signal?.throwIfAborted();
    const enqueued = enqueue(this.#tables, jobs);
    this.#wakeFor([enqueued.soonest]);
    return { jobs: enqueued.jobs };
  }

  async findCandidates({ keys, signal }: FindCandidatesRequest): Promise<FindCandidatesResult> {
    signal?.throwIfAborted();
    return {
      candidates: keys.map((key) => findCandidates(this.#tables, key)),
      known: keys.flatMap(({ ids = [] }) => ids.filter((id) => isKnown(this.#tables, id))),
    };
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────────────────────

  async startWorker(
    request: WorkerRegistration & Signalled,
  ): Promise<{ readonly worker: WorkerId }> {
    request.signal?.throwIfAborted();
    return { worker: startWorker(this.#tables, request) };
  }

  async stopWorker({ worker, signal }: { readonly worker: WorkerId } & Signalled): Promise<void> {
    signal?.throwIfAborted();
    stopWorker(this.#tables, worker);
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    request.signal?.throwIfAborted();
    return claim(this.#tables, request);
  }

  async settle({
    worker,
    settlements,
    signal,
  }: SettleRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    signal?.throwIfAborted();
    const settled = settlements.map((settlement) => settle(this.#tables, worker, settlement));
    this.#wakeFor(settled.map(({ dueAt }) => dueAt));
    return { verdicts: settled.map(({ verdict }) => verdict) };
  }

  async handBack({
    worker,
    claims,
    signal,
  }: HandBackRequest): Promise<{ readonly verdicts: readonly SettleVerdict[] }> {
    signal?.throwIfAborted();
    const verdicts = claims.map((ref) => handBack(this.#tables, worker, ref));
    if (verdicts.includes("applied")) this.#wake();
    return { verdicts };
  }

  async extendLease({
    worker,
    extensions,
    signal,
  }: ExtendLeaseRequest): Promise<{ readonly results: readonly ExtendLeaseResult[] }> {
    signal?.throwIfAborted();
    return {
      results: extensions.map((extension) => extendLease(this.#tables, worker, extension)),
    };
  }

  async beat(
    request: WorkerRegistration & { readonly worker: WorkerId } & Signalled,
  ): Promise<BeatResult> {
    request.signal?.throwIfAborted();
    const serverUpMs = this.#tables.now() - this.#startedAt;
    return { ...beat(this.#tables, request.worker, request), serverUpMs };
  }

  async findStale(request: FindStaleRequest): Promise<{ readonly claims: readonly StaleClaim[] }> {
    request.signal?.throwIfAborted();
    return { claims: findStale(this.#tables, request) };
  }

  async recover({
    recoveries,
    signal,
  }: RecoverRequest): Promise<{ readonly applied: readonly boolean[] }> {
    signal?.throwIfAborted();
    const recovered = recoveries.map((recovery) => recover(this.#tables, recovery));
    this.#wakeFor(recovered.map((each) => each?.dueAt ?? null));
    return { applied: recovered.map((each) => each !== null) };
  }

  listen({ onWake }: { readonly onWake: () => void }): Subscription {
    // A subscription of its own, however often the same function is handed over.
    const listener = () => onWake();
    this.#listeners.add(listener);
    const listening = Promise.resolve().then(() => this.#call(listener));
    return {
      listening,
      close: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /**
   * Wakes workers if one of them could oversleep one of these instants. Workers that look silent count too: all do when the
   * clock has just jumped forward.
   */
  #wakeFor(instants: readonly (number | null)[]): void {
    const pollMax = presentWorkers(this.#tables).map(({ pollMaxMs }) => pollMaxMs);
    const horizon = this.#tables.after(Math.max(0, ...pollMax));
    if (instants.some((at) => at !== null && at <= horizon)) this.#wake();
  }

  /** After the call that caused it, as a notification would come. */
  #wake(): void {
    // By way of promises: tests may have put a fake in the place of `queueMicrotask`.
    for (const listener of this.#listeners) void Promise.resolve().then(() => this.#call(listener));
  }

  #call(listener: () => void): void {
    if (this.#listeners.has(listener)) listener();
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────────────────────

  async findJob({ id, signal }: JobRequest): Promise<{ readonly job: JobRecord | null }> {
    signal?.throwIfAborted();
    const body = this.#tables.bodies.get(id);
    return { job: body === undefined ? null : toJobRecord(this.#tables, body) };
  }

  async queryJobs(query: JobQuery): Promise<{ readonly jobs: readonly JobRecord[] }> {
    query.signal?.throwIfAborted();
    return { jobs: queryJobs(this.#tables, query) };
  }

  async readJournal(
    request: ReadJournalRequest,
  ): Promise<{ readonly entries: readonly JournalEntry[] }> {
    request.signal?.throwIfAborted();
    return { entries: readJournal(this.#tables, request) };
  }

  async stats({ signal }: Signalled = {}): Promise<{ readonly stats: Stats }> {
    signal?.throwIfAborted();
    return { stats: stats(this.#tables) };
  }

  async cleanup(request: CleanupRequest): Promise<{ readonly deleted: number }> {
    request.signal?.throwIfAborted();
    return { deleted: cleanup(this.#tables, request) };
  }

  async retry({ id, signal }: JobRequest): Promise<{ readonly applied: boolean }> {
    signal?.throwIfAborted();
    const applied = retry(this.#tables, id);
    if (applied) this.#wake();
    return { applied };
  }

  async cancel({ id, signal }: JobRequest): Promise<{ readonly applied: boolean }> {
    signal?.throwIfAborted();
    return { applied: cancel(this.#tables, id) };
  }
}

function clockOf(options: MemoryStoreOptions): Clock {
  checkMembers("options", options, ["clock"], "MemoryStore");
  const { clock = { now: Date.now } } = options;
  if (typeof readArgument("clock", () => clock?.now) === "function") return clock;
  throw invalidArgument(
    "clock",
    `is not a clock (got ${show(clock)})`,
    "pass { now: () => epochMilliseconds }, such as new ManualClock()",
  );
}
