import type { EnqueuedJob } from "@venturi/core";
import { CulpritsFound, type QueuedJob } from "./merging.ts";

/** Jobs that one call stores together: all of them or none. */
export interface JobGroup {
  readonly jobs: readonly QueuedJob[];
  readonly resolve: (jobs: readonly EnqueuedJob[]) => void;
  readonly reject: (error: unknown) => void;
  /** Whether its caller has stopped waiting: it is left out of what has not been sent yet. */
  readonly isAbandoned: () => boolean;
}

/** Stores jobs with one statement; what it answers is in their order. */
export type Send = (jobs: readonly QueuedJob[]) => Promise<readonly EnqueuedJob[]>;

export interface LanePolicy {
  readonly send: Send;
  /** Whether several calls share a statement; inside a transaction one fault would be everybody's. */
  readonly coalesces: () => boolean;
  /** Whether one group of a failed statement may be to blame, so that the others are tried without it. */
  readonly isolates: (error: unknown) => boolean;
}

/** The most that one shared statement carries; a group that is larger goes alone. */
export const MAX_STATEMENT_JOBS = 1000;
const MAX_STATEMENT_CHARACTERS = 1_000_000;

/** Has one statement in flight at a time, with the rest piling up behind it: batches form by themselves, without a timer. */
export class EnqueueLane {
  readonly #policy: LanePolicy;
  #pile: JobGroup[] = [];
  #isRunning = false;

  constructor(policy: LanePolicy) {
    this.#policy = policy;
  }

  /** Whether what is stored now belongs to a transaction of the caller's. */
  get isInTransaction(): boolean {
    return !this.#policy.coalesces();
  }

  add(group: JobGroup): void {
    this.#pile.push(group);
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Not at once, so that whatever else is enqueued in this turn shares the statement. By way of a promise, because
    // tests of an application may have put a fake in the place of `queueMicrotask`.
    void Promise.resolve().then(() => this.#run());
  }

  /** Gives back what has not been sent, in order. */
  takeAll(): readonly JobGroup[] {
    const pile = this.#pile;
    this.#pile = [];
    return pile;
  }

  async #run(): Promise<void> {
    while (this.#pile.length > 0) {
      await this.#deliver(this.#takeBatch());
    }
    this.#isRunning = false;
  }

  #takeBatch(): JobGroup[] {
    const pile = this.#pile;
    const coalesces = this.#policy.coalesces();
    let count = 0;
    let jobs = 0;
    let characters = 0;
    for (const group of pile) {
      jobs += group.jobs.length;
      for (const job of group.jobs) characters += approximateSize(job);
      const fits = jobs <= MAX_STATEMENT_JOBS && characters <= MAX_STATEMENT_CHARACTERS;
      if (count > 0 && !(fits && coalesces)) break;
      count += 1;
    }
    this.#pile = pile.slice(count);
    return pile.slice(0, count);
  }

  /** Sends a batch. Never rejects: every group gets its answer. */
  async #deliver(batch: readonly JobGroup[]): Promise<void> {
    const groups = batch.filter((group) => !group.isAbandoned());
    if (groups.length === 0) return;
    try {
      const stored = await this.#policy.send(groups.flatMap((group) => group.jobs));
      let from = 0;
      for (const group of groups) {
        group.resolve(stored.slice(from, from + group.jobs.length));
        from += group.jobs.length;
      }
    } catch (error) {
      if (error instanceof CulpritsFound) return this.#deliverWithout(error, groups);
      if (groups.length === 1 || !this.#policy.isolates(error)) {
        for (const group of groups) group.reject(error);
        return;
      }
      const middle = Math.ceil(groups.length / 2);
      await this.#deliver(groups.slice(0, middle));
      await this.#deliver(groups.slice(middle));
    }
  }

  /** Rejects the calls that failed before their statement was sent, and sends the others without them. */
  async #deliverWithout(found: CulpritsFound, groups: readonly JobGroup[]): Promise<void> {
    const others: JobGroup[] = [];
    for (const group of groups) {
      const culprit = group.jobs.find((job) => found.errors.has(job));
      if (culprit === undefined) others.push(group);
      else group.reject(found.errors.get(culprit));
    }
    if (others.length < groups.length) await this.#deliver(others);
    else for (const group of groups) group.reject(found);
  }
}

/** Text that a job adds to a statement, give or take its names and quotes. */
function approximateSize(job: QueuedJob): number {
  return job.payload.length + job.kind.length + (job.dedupKey?.length ?? 0) + 100;
}
