import {
  FAR_FUTURE_MS,
  type Headers,
  type JobId,
  type JournalOutcome,
  type PriorityTier,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type { Clock } from "../manual-clock.ts";

/** What a job is, from its enqueue until cleanup; only merges change it. */
export interface Body {
  readonly id: JobId;
  readonly kind: string;
  readonly dedupKey: string | null;
  readonly createdAt: number;
  readonly payload: string;
  readonly headers: Headers | null;
  readonly tier: PriorityTier;
}

/** How a job stands that has not completed and was not cancelled. */
export interface JobState {
  readonly id: JobId;
  readonly kind: string;
  readonly dedupKey: string | null;
  readonly tier: PriorityTier;
  /** Its place in the order of arrival. */
  readonly seq: number;
  readonly visibleAt: number;
  /** Was not due, and has not been found due since. */
  readonly scheduled: boolean;
  readonly leaseMs: number | null;
  readonly runCount: number;
  readonly failureCount: number;
  /** Counts merges. */
  readonly version: number;
  readonly carry: string | null;
}

export interface Claim {
  readonly worker: WorkerId;
  readonly claimedAt: number;
  readonly leaseExpiresAt: number;
  readonly backstop: number | null;
}

/** A pending job, or a claimed one. */
export interface LiveJob extends JobState {
  readonly claim: Claim | null;
}

export interface DeadJob extends JobState {
  readonly finishedAt: number;
}

export interface Entry {
  readonly jobId: JobId;
  readonly kind: string;
  readonly runNo: number;
  readonly failureCount: number;
  readonly outcome: JournalOutcome;
  readonly note: string | null;
  readonly attachment: string | null;
  readonly detail: string | null;
  readonly worker: WorkerId | null;
  readonly startedAt: number | null;
  readonly recordedAt: number;
}

export interface WorkerRow extends WorkerRegistration {
  readonly id: WorkerId;
  readonly beatAt: number;
  readonly stoppingAt: number | null;
}

/** The longest span that is counted with, in milliseconds. */
export const maxSpanMs = 3e14;

/** All that a store in memory holds. Rows are never changed, only replaced, so that an enqueue can be undone. */
export class Tables {
  readonly bodies = new Map<JobId, Body>();
  readonly live = new Map<JobId, LiveJob>();
  readonly dead = new Map<JobId, DeadJob>();
  readonly journals = new Map<JobId, readonly Entry[]>();
  /** The job that an id was merged into when it first came. */
  readonly incoming = new Map<JobId, JobId>();
  readonly workers = new Map<WorkerId, WorkerRow>();
  readonly pausedKinds = new Set<string>();
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<JobId>>();
  #undo: (() => void)[] | null = null;
  #seq = 0;
  #workerIds = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return toMicros(this.#clock.now());
  }

  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  nextWorker(): WorkerId {
    this.#workerIds += 1;
    return this.#workerIds;
  }

  /** All of what the work writes, or nothing when it throws. */
  atomically<T>(work: () => T): T {
    const undo: (() => void)[] = [];
    this.#undo = undo;
    try {
      return work();
    } catch (error) {
      this.#undo = null;
      for (const step of undo.reverse()) step();
      throw error;
    } finally {
      this.#undo = null;
    }
  }

  /** Sets or removes a row. */
  put<K, V>(table: Map<K, V>, key: K, value: V | undefined): void {
    const before = table.get(key);
    if (value === undefined) table.delete(key);
    else table.set(key, value);
    this.#undo?.push(() => this.put(table, key, before));
  }

  putLive(id: JobId, job: LiveJob | undefined): void {
    const before = this.live.get(id);
    this.#index(before, (ids) => ids.delete(id));
    if (job === undefined) this.live.delete(id);
    else this.live.set(id, job);
    this.#index(job, (ids) => ids.add(id));
    this.#undo?.push(() => this.putLive(id, before));
  }

  log(entry: Partial<Entry> & Pick<Entry, "outcome">, of: JobState): void {
    const whole: Entry = {
      jobId: of.id,
      kind: of.kind,
      runNo: of.runCount,
      failureCount: of.failureCount,
      note: null,
      attachment: null,
      detail: null,
      worker: null,
      startedAt: null,
      recordedAt: this.now(),
      ...entry,
    };
    this.put(this.journals, of.id, [...(this.journals.get(of.id) ?? []), whole]);
  }

  /** The pending jobs of a kind and key, first come first. */
  pendingOf(kind: string, dedupKey: string): readonly LiveJob[] {
    return [...(this.#byKey.get(keyOf(kind, dedupKey)) ?? [])]
      .map((id) => this.live.get(id))
      .filter((job): job is LiveJob => job !== undefined && job.claim === null)
      .sort((a, b) => a.seq - b.seq);
  }

  /** The clock plus a span in milliseconds; negative spans are 0. */
  after(ms: number): number {
    return Math.min(toMicros(this.now() + Math.min(Math.max(ms, 0), maxSpanMs)), FAR_FUTURE_MS);
  }

  /** An absolute due time: not before now, nor after the far date. */
  at(epochMs: number): number {
    return Math.min(Math.max(toMicros(epochMs), this.now()), FAR_FUTURE_MS);
  }

  #index(job: LiveJob | undefined, change: (ids: Set<JobId>) => void): void {
    if (job === undefined || job.dedupKey === null) return;
    const key = keyOf(job.kind, job.dedupKey);
    const ids = this.#byKey.get(key) ?? new Set<JobId>();
    change(ids);
    if (ids.size === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, ids);
  }
}

function keyOf(kind: string, dedupKey: string): string {
  return JSON.stringify([kind, dedupKey]);
}

/** Whole microseconds, as a database keeps them. */
function toMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
