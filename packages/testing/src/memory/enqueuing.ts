import {
  type EnqueuedJob,
  type EnqueueJob,
  type EnqueueOutcome,
  FAR_FUTURE_MS,
  invalidArgument,
  type JobId,
  MAX_DEDUP_KEY_CHARACTERS,
  MAX_KIND_CHARACTERS,
  type MergeChoice,
  priorityTier,
  VenturiError,
} from "@venturi/core";
import { toStoredJson } from "./json-text.ts";
import { type LiveJob, maxSpanMs, type Tables } from "./tables.ts";

/** What a call came to. */
export interface Enqueued {
  readonly jobs: readonly EnqueuedJob[];
  /** The earliest due time that workers have to be told of, in epoch milliseconds; null: none. */
  readonly soonest: number | null;
}

/** Stores all jobs or, when it throws, none of them. */
export function enqueue(tables: Tables, jobs: readonly EnqueueJob[]): Enqueued {
  for (const [index, job] of jobs.entries()) check(job, index + 1);
  return tables.atomically(() => {
    const repeats = findRepeats(tables, jobs);
    const call = new EnqueueCall(
      tables,
      jobs.filter((_, index) => repeats[index] !== null).map(({ id }) => id),
    );
    const answers: EnqueuedJob[] = [];
    for (const [index, job] of jobs.entries()) {
      const repeat = repeats[index];
      const seq = tables.nextSeq();
      if (repeat === null || repeat === undefined) answers.push(call.store(job, seq));
      else {
        const id = typeof repeat === "number" ? (answers[repeat] as EnqueuedJob).id : repeat;
        answers.push({ id, outcome: "repeated" });
      }
    }
    return { jobs: answers, soonest: call.soonest };
  });
}

function check(job: EnqueueJob, place: number): void {
  const refuse = (what: string, hint: string): never => {
    throw invalidArgument("job", `${place} cannot be enqueued: ${what}`, hint);
  };
  if (job.kind.length < 1 || job.kind.length > MAX_KIND_CHARACTERS)
    refuse("its kind is empty or too long", `use 1 to ${MAX_KIND_CHARACTERS} characters`);
  if ((job.dedupKey?.length ?? 0) > MAX_DEDUP_KEY_CHARACTERS)
    refuse("its dedup key is too long", `use at most ${MAX_DEDUP_KEY_CHARACTERS} characters`);
  if (job.delayMs !== undefined && job.runAt !== undefined)
    refuse("it has both a delay and a time", "give one of the two");
  if (job.decision !== undefined && (job.dedupKey ?? null) === null)
    refuse("it has a decision but no dedup key", "decide merges of keyed jobs only");
}

/** For each job: the id of the job that it repeats, or the place in this call of the job that it repeats; null for a new job. */
function findRepeats(
  tables: Tables,
  jobs: readonly EnqueueJob[],
): readonly (JobId | number | null)[] {
  const places = new Map<JobId, number>();
  return jobs.map((job, index) => {
    const known = tables.bodies.has(job.id) ? job.id : tables.incoming.get(job.id);
    if (known !== undefined) {
      const body = tables.bodies.get(known);
      if (body?.kind !== job.kind || body.dedupKey !== (job.dedupKey ?? null)) throw conflict(job);
      return known;
    }
    const first = places.get(job.id);
    if (first === undefined) {
      places.set(job.id, index);
      return null;
    }
    const other = jobs[first];
    if (other?.kind !== job.kind || (other.dedupKey ?? null) !== (job.dedupKey ?? null))
      throw conflict(job);
    return first;
  });
}

function conflict({ id }: EnqueueJob): VenturiError {
  return new VenturiError(
    "id-conflict",
    `could not enqueue a job: the id ${id} belongs to a job of another kind or key; give each job an id of its own`,
    { id },
  );
}

type Merging = Extract<MergeChoice, { readonly candidate: JobId }>;

/** One call that enqueues: stores or merges its new jobs one by one. */
class EnqueueCall {
  soonest: number | null = null;
  readonly #tables: Tables;
  readonly #repeated: readonly JobId[];

  constructor(tables: Tables, repeated: readonly JobId[]) {
    this.#tables = tables;
    this.#repeated = repeated;
  }

  store(job: EnqueueJob, seq: number): EnqueuedJob {
    const { dedupKey = null, decision, merge = "replace" } = job;
    if (dedupKey === null) return this.#insert(job, seq);
    const pending = this.#tables.pendingOf(job.kind, dedupKey);
    if (decision === undefined) {
      const [candidate] = pending;
      if (merge === "independent" || candidate === undefined) return this.#insert(job, seq);
      return this.#merge(job, { action: merge }, candidate, seq);
    }
    if (decision.action === "independent") return this.#insert(job, seq);
    if (decision.action === "insert") {
      if (pending.some(({ id }) => !decision.skipped.includes(id))) throw changed(this.#repeated);
      return this.#insert(job, seq);
    }
    const { candidate: id, version, runCount } = decision;
    const candidate = pending.find((other) => other.id === id);
    if (candidate?.version !== version || candidate.runCount !== runCount)
      throw changed(this.#repeated);
    return this.#merge(job, decision, candidate, seq);
  }

  #insert(job: EnqueueJob, seq: number): EnqueuedJob {
    const { id, kind, dedupKey = null } = job;
    const tier = priorityTier(job.priority);
    const now = this.#tables.now();
    const visibleAt = this.#dueAt(job);
    const payload = toStoredJson(job.payload);
    const headers = job.headers ?? null;
    const body = { id, kind, dedupKey, createdAt: now, payload, headers, tier };
    this.#tables.put(this.#tables.bodies, id, body);
    this.#tables.putLive(id, {
      id,
      kind,
      dedupKey,
      tier,
      seq,
      visibleAt,
      scheduled: visibleAt > now,
      leaseMs: leaseOf(job),
      runCount: 0,
      failureCount: 0,
      version: 0,
      carry: null,
      claim: null,
    });
    this.#wakeFor(visibleAt);
    return { id, outcome: "enqueued" };
  }

  #merge(
    job: EnqueueJob,
    choice: Merging | { readonly action: "keep" | "replace" },
    candidate: LiveJob,
    seq: number,
  ): EnqueuedJob {
    const { id } = candidate;
    if (choice.action !== "keep") this.#change(job, choice, candidate, seq);
    this.#tables.put(this.#tables.incoming, job.id, id);
    this.#tables.log({ outcome: "merged", note: choice.action }, candidate);
    return { id, outcome: outcomes[choice.action] };
  }

  #change(
    job: EnqueueJob,
    choice: Merging | { readonly action: "keep" | "replace" },
    candidate: LiveJob,
    seq: number,
  ): void {
    const { id } = candidate;
    const now = this.#tables.now();
    const changes =
      choice.action === "with"
        ? {
            payload: choice.payload,
            carry: choice.carry === undefined ? candidate.carry : toStoredJson(choice.carry),
            // A time that has passed means now, unless the job has been due for longer already.
            visibleAt:
              choice.visibleAt === undefined
                ? candidate.visibleAt
                : Math.max(wholeMs(choice.visibleAt), Math.min(candidate.visibleAt, now)),
            tier: choice.priority === undefined ? candidate.tier : priorityTier(choice.priority),
          }
        : {
            payload: job.payload,
            carry: null,
            visibleAt: Math.min(candidate.visibleAt, this.#dueAt(job)),
            tier: priorityTier(job.priority),
          };
    const { carry, visibleAt, tier } = changes;
    const body = this.#tables.bodies.get(id);
    if (body !== undefined) {
      const payload = toStoredJson(changes.payload);
      const headers = job.headers ?? null;
      this.#tables.put(this.#tables.bodies, id, { ...body, payload, headers, tier });
    }
    const arrives = candidate.scheduled && visibleAt <= now;
    this.#tables.putLive(id, {
      ...candidate,
      tier,
      carry,
      visibleAt,
      leaseMs: leaseOf(job),
      version: candidate.version + 1,
      scheduled: (candidate.scheduled || visibleAt > candidate.visibleAt) && visibleAt > now,
      seq: arrives ? seq : candidate.seq,
    });
    if (visibleAt < candidate.visibleAt || tier < candidate.tier) this.#wakeFor(visibleAt);
  }

  #dueAt({ delayMs, runAt }: EnqueueJob): number {
    return runAt === undefined ? this.#tables.after(delayMs ?? 0) : this.#tables.at(wholeMs(runAt));
  }

  #wakeFor(visibleAt: number): void {
    this.soonest = Math.min(this.soonest ?? visibleAt, visibleAt);
  }
}

const outcomes: Readonly<Record<"keep" | "replace" | "with", EnqueueOutcome>> = {
  keep: "kept",
  replace: "replaced",
  with: "merged",
};

/** Names the jobs that are repeats, so that a new decision counts on nothing becoming of them. */
function changed(ids: readonly JobId[]): VenturiError {
  return new VenturiError(
    "merge",
    "could not enqueue: the pending job that a merge was decided about has changed; enqueue again, and it is decided anew",
    { isRetryable: true, ids },
  );
}

function leaseOf({ leaseMs }: EnqueueJob): number | null {
  return leaseMs === undefined || leaseMs === null ? null : Math.min(leaseMs, maxSpanMs);
}

/** An absolute time as it is handed over: whole milliseconds, none before 1970, none after the far date. */
function wholeMs(epochMs: number): number {
  return Math.min(Math.trunc(Math.max(0, epochMs)), FAR_FUTURE_MS);
}
