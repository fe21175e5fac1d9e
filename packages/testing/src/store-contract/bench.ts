import assert from "node:assert/strict";
import {
  type ClaimedJob,
  type ClaimKind,
  type ClaimRequest,
  type ClaimResult,
  createJobIds,
  type EnqueuedJob,
  type EnqueueJob,
  isVenturiError,
  type JobId,
  type JobQuery,
  type JobRecord,
  type JournalEntry,
  type Notifier,
  type Settlement,
  type SettlementOutcome,
  type SettleVerdict,
  type Store,
  type VenturiError,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type { ContractNeed, ContractSubject } from "./contract.ts";

/** One statement with how it is checked. */
interface Check {
  readonly name: string;
  readonly needs?: readonly ContractNeed[];
  readonly check: (bench: Bench) => Promise<void>;
}

export interface Topic {
  readonly topic: string;
  readonly checks: readonly Check[];
}

/** Types of transactions matter to their store alone. */
type AnyStore = Store<unknown> & Partial<Notifier>;

/** A store on the bench: its verbs with what checks do not care about filled in. */
export class Bench {
  readonly store: AnyStore;
  readonly newId = createJobIds({ now: Date.now, random: Math.random });
  readonly #subject: ContractSubject<unknown>;

  constructor(subject: ContractSubject<unknown>) {
    this.#subject = subject;
    this.store = subject.store;
  }

  async now(): Promise<number> {
    return (await this.#subject.clock?.now()) ?? Number.NaN;
  }

  async advance(ms: number): Promise<void> {
    await this.#subject.clock?.advance(ms);
  }

  async pauseKind(kind: string): Promise<void> {
    await this.#subject.pauseKind?.(kind);
  }

  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const { transaction } = this.#subject;
    assert(transaction, "the case needs transactions");
    return transaction(work);
  }

  /** A normal job of kind "a" with an empty payload. */
  job(changes: Partial<EnqueueJob> = {}): EnqueueJob {
    return { id: this.newId(), kind: "a", payload: "{}", priority: "normal", ...changes };
  }

  async enqueue(...jobs: readonly Partial<EnqueueJob>[]): Promise<readonly EnqueuedJob[]> {
    return (await this.store.enqueue({ jobs: jobs.map((job) => this.job(job)) })).jobs;
  }

  /** The id of one enqueued job. */
  async add(job: Partial<EnqueueJob> = {}): Promise<JobId> {
    const [enqueued] = await this.enqueue(job);
    assert(enqueued, "enqueue answers for every job");
    return enqueued.id;
  }

  async worker(changes: Partial<WorkerRegistration> = {}): Promise<WorkerId> {
    return (await this.store.startWorker({ ...registration, ...changes })).worker;
  }

  /** Claims up to ten jobs of kind "a" in strict order, unless told otherwise. */
  claimFor(worker: WorkerId, changes: ClaimChanges = {}): Promise<ClaimResult> {
    const { kinds = ["a"], ...rest } = changes;
    return this.store.claim({
      worker,
      limit: 10,
      turn: { counter: 0, ratio: null },
      ...rest,
      kinds: kinds.map((kind) =>
        typeof kind === "string"
          ? { kind, limit: 1_000, leaseMs: 900_000, backstop: 20 }
          : { limit: 1_000, leaseMs: 900_000, backstop: 20, ...kind },
      ),
    });
  }

  /**
   * What a worker that has just started claims: an established one may put the order of re-pended jobs off for a
   * moment, a new one looks at everything.
   */
  async claim(changes: ClaimChanges = {}): Promise<readonly ClaimedJob[]> {
    return (await this.claimFor(await this.worker(), changes)).jobs;
  }

  async claimedIds(changes: ClaimChanges = {}): Promise<readonly JobId[]> {
    return this.idsFor(await this.worker(), changes);
  }

  async idsFor(worker: WorkerId, changes: ClaimChanges = {}): Promise<readonly JobId[]> {
    return (await this.claimFor(worker, changes)).jobs.map(({ id }) => id);
  }

  /** The one job that is claimable, in the hands of a worker. */
  async claimOne(
    worker: WorkerId,
    changes: ClaimChanges = {},
  ): Promise<ClaimedJob & { readonly worker: WorkerId }> {
    const { jobs } = await this.claimFor(worker, { ...changes, limit: 1 });
    assert(jobs[0], "a due job is claimed");
    return { ...jobs[0], worker };
  }

  /** A job enqueued and claimed by a worker of its own. */
  async running(
    job: Partial<EnqueueJob> = {},
    changes: ClaimChanges = {},
  ): Promise<ClaimedJob & { readonly worker: WorkerId }> {
    const kind = job.kind ?? "a";
    await this.add(job);
    return this.claimOne(await this.worker(), { kinds: [kind], ...changes });
  }

  async settle(
    run: { readonly id: JobId; readonly runCount: number; readonly worker: WorkerId },
    outcome: SettlementOutcome = "completed",
    changes: Partial<Settlement> = {},
  ): Promise<SettleVerdict | undefined> {
    const settlements = [settlementOf(run, outcome, changes)];
    return (await this.store.settle({ worker: run.worker, settlements })).verdicts[0];
  }

  async find(id: JobId): Promise<JobRecord> {
    const { job } = await this.store.findJob({ id });
    assert(job, `job ${id} is found`);
    return job;
  }

  async journal(id: JobId): Promise<readonly JournalEntry[]> {
    return (await this.store.readJournal({ jobId: id })).entries;
  }

  async outcomes(id: JobId): Promise<readonly string[]> {
    return (await this.journal(id)).map(({ outcome }) => outcome);
  }

  async query(changes: Partial<JobQuery> = {}): Promise<readonly JobId[]> {
    const { jobs } = await this.store.queryJobs({ ...everything, ...changes });
    return jobs.map(({ id }) => id);
  }
}

export type ClaimChanges = Partial<Omit<ClaimRequest, "kinds" | "worker">> & {
  readonly kinds?: readonly (string | (Partial<ClaimKind> & Pick<ClaimKind, "kind">))[];
};

export const registration: WorkerRegistration = {
  name: "worker",
  kinds: ["a"],
  pollMaxMs: 5_000,
  workerTimeoutMs: 60_000,
  shortestLeaseMs: 900_000,
};

const everything: JobQuery = {
  statuses: null,
  kinds: null,
  ids: null,
  finishedSince: null,
  finishedUntil: null,
  limit: 100,
  before: null,
};

export function settlementOf(
  run: { readonly id: JobId; readonly runCount: number },
  outcome: SettlementOutcome = "completed",
  changes: Partial<Settlement> = {},
): Settlement {
  const { id, runCount } = run;
  return {
    jobId: id,
    runCount,
    outcome,
    delayMs: 0,
    runAt: null,
    carry: null,
    note: null,
    attachment: null,
    detail: null,
    ...changes,
  };
}

export const equal: (actual: unknown, expected: unknown, message?: string) => void = (
  actual,
  expected,
  message,
) => assert.deepStrictEqual(actual, expected, message);

export const holds: (condition: unknown, message: string) => void = (condition, message) =>
  assert(condition, message);

/** The venturi error that a call must reject with. */
export async function failure(
  call: Promise<unknown>,
  code: VenturiError["code"],
): Promise<VenturiError> {
  const error = await call.then(
    () => assert.fail(`it must reject with ${code}`),
    (thrown: unknown) => thrown,
  );
  if (!isVenturiError(error)) throw error;
  equal(error.code, code);
  return error;
}

/** Calls must reject with the reason of a signal that has aborted before, all of them. */
export async function refused(
  calls: (signal: AbortSignal) => Readonly<Record<string, () => Promise<unknown>>>,
): Promise<void> {
  const reason = new Error("stop");
  for (const [verb, call] of Object.entries(calls(AbortSignal.abort(reason)))) {
    const outcome = await call().catch((error: unknown) => error);
    holds(outcome === reason, `${verb} rejects with the reason`);
  }
}
