import { VenturiError } from "./errors.ts";
import { failureMessage } from "./failure-note.ts";
import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import { type Decision, isDecision, type MergeFunction, type Pending } from "./merge.ts";
import { decodeJson, encodeJson } from "./payload-codec.ts";
import type { Priority } from "./priority.ts";
import { isPromise } from "./schema.ts";
import type { EnqueueJob } from "./store.ts";
import type { Task } from "./task.ts";

/** A pending job that an incoming one may be merged into, as the store holds it. */
export interface MergeCandidate {
  readonly id: JobId;
  /** Counts merges: with the run count it says whether the candidate is still what was decided about. */
  readonly version: number;
  readonly runCount: number;
  readonly failureCount: number;
  readonly priority: Priority;
  readonly visibleAt: Date;
  /** JSON text. */
  readonly payload: string;
  /** JSON text; null: the initial carry. */
  readonly carry: string | null;
  readonly journal: readonly JournalEntry[];
}

/** What a merge function has decided about one job, as a store applies it, if its candidate has not changed. */
export type MergeChoice =
  /** There was nobody to merge with but these, which could not be decoded. */
  | { readonly action: "insert"; readonly skipped: readonly JobId[] }
  | { readonly action: "independent" }
  | ({ readonly action: "keep" | "replace" } & ChosenCandidate)
  | ({
      readonly action: "with";
      /** JSON text. */
      readonly payload: string;
      /** JSON text; undefined: what is stored stays. */
      readonly carry?: string | null;
      /** Epoch milliseconds; undefined: unchanged. */
      readonly visibleAt?: number;
      readonly priority?: Priority;
    } & ChosenCandidate);

export interface ChosenCandidate {
  readonly candidate: JobId;
  readonly version: number;
  readonly runCount: number;
}

/** A job whose task's merge function is to be asked. */
export interface UndecidedJob {
  readonly job: EnqueueJob;
  readonly task: Task;
}

/** A pending job as the jobs of one call see it, those before them in the call included. */
interface Row {
  readonly id: JobId;
  version: number;
  readonly runCount: number;
  readonly failureCount: number;
  priority: Priority;
  visibleAt: Date;
  payload: unknown;
  carry: unknown;
  journal: readonly JournalEntry[];
}

export interface MergePlan {
  /** The jobs with their decisions, in order. */
  readonly jobs: readonly EnqueueJob[];
  /** Candidates that today's schema refuses; they neither block nor take part. */
  readonly skipped: readonly JobId[];
}

/**
 * Asks the merge functions about the jobs of one call and one key, in order: a later job meets what an earlier one
 * has made of the pending one, or the earlier one itself.
 *
 * Rejects with `merge` when a function throws, returns a promise or something that is no decision, and as an enqueue
 * does when the payload or carry it gave is refused.
 */
export async function planMerges(
  jobs: readonly UndecidedJob[],
  candidates: readonly MergeCandidate[],
  now: Date,
): Promise<MergePlan> {
  const [first] = jobs;
  if (first === undefined) return { jobs: [], skipped: [] };
  const rows: Row[] = [];
  const skipped: JobId[] = [];
  for (const candidate of candidates) {
    const row = await readRow(first.task, candidate);
    if (row === null) skipped.push(candidate.id);
    else rows.push(row);
  }
  const decided: EnqueueJob[] = [];
  for (const { job, task } of jobs) {
    const [row] = rows;
    const { job: chosen, inserted } =
      row === undefined ? insert(job, skipped) : await merge(job, task, row, now);
    decided.push(chosen);
    if (inserted) rows.push(await newRow(task, job, now));
  }
  return { jobs: decided, skipped };
}

interface Step {
  readonly job: EnqueueJob;
  /** Whether it becomes a row of its own. */
  readonly inserted: boolean;
}

function insert(job: EnqueueJob, skipped: readonly JobId[]): Step {
  return { job: { ...job, decision: { action: "insert", skipped: [...skipped] } }, inserted: true };
}

async function merge(job: EnqueueJob, task: Task, row: Row, now: Date): Promise<Step> {
  const decision = callMerge(task, decodeJson(job.payload, "payload", job.kind), row);
  if (decision.decision === "independent") {
    return { job: { ...job, decision: { action: "independent" } }, inserted: true };
  }
  const chosen = { candidate: row.id, version: row.version, runCount: row.runCount };
  row.journal = [...row.journal, mergedEntry(row, job, decision.decision, now)];
  if (decision.decision === "keep")
    return { job: { ...job, decision: { action: "keep", ...chosen } }, inserted: false };
  row.version += 1;
  if (decision.decision !== "with") {
    row.payload = decodeJson(job.payload, "payload", job.kind);
    row.carry = await task.decodeCarry(null);
    row.priority = job.priority;
    row.visibleAt = new Date(Math.min(row.visibleAt.getTime(), dueAt(job, now)));
    return { job: { ...job, decision: { action: "replace", ...chosen } }, inserted: false };
  }
  // Validated like an enqueued one; what the task computes from a payload at enqueue comes from this one.
  const prepared = await task.prepare(decision.payload);
  row.payload = decodeJson(prepared.payload, "payload", job.kind);
  const carry =
    decision.carry === undefined ? undefined : encodeJson(decision.carry, "carry", job.kind);
  if (carry !== undefined) row.carry = await task.decodeCarry(carry);
  const { visibleAt, priority } = decision;
  if (visibleAt !== undefined) row.visibleAt = visibleAt;
  if (priority !== undefined) row.priority = priority;
  return {
    job: {
      ...job,
      leaseMs: prepared.leaseMs,
      decision: {
        action: "with",
        ...chosen,
        payload: prepared.payload,
        ...(carry === undefined ? {} : { carry }),
        ...(visibleAt === undefined ? {} : { visibleAt: visibleAt.getTime() }),
        ...(priority === undefined ? {} : { priority }),
      },
    },
    inserted: false,
  };
}

function callMerge(task: Task, incoming: unknown, row: Row): Decision<unknown, unknown> {
  const fail = (what: string, cause?: unknown) =>
    new VenturiError(
      "merge",
      `the merge function of ${JSON.stringify(task.kind)} ${what}; nothing was enqueued`,
      { cause },
    );
  const pending: Pending<unknown, unknown> = Object.freeze({
    id: row.id,
    payload: row.payload,
    carry: row.carry,
    runCount: row.runCount,
    failureCount: row.failureCount,
    journal: row.journal,
    visibleAt: new Date(row.visibleAt),
    priority: row.priority,
  });
  let decision: unknown;
  try {
    decision = (task.merge as MergeFunction<unknown, unknown>)(incoming, pending);
  } catch (error) {
    throw fail(`threw: ${failureMessage(error).slice(0, 300)}`, error);
  }
  if (isPromise(decision)) {
    decision.then(undefined, () => undefined);
    throw fail("returned a promise: it must be synchronous");
  }
  if (isDecision(decision)) return decision;
  throw fail("returned no decision: return Merge.keep(), replace(), with(…) or independent()");
}

/** Null for a candidate that today's schemas refuse. */
async function readRow(task: Task, candidate: MergeCandidate): Promise<Row | null> {
  const { payload, carry, ...rest } = candidate;
  try {
    await task.decodePayload(payload);
    return {
      ...rest,
      payload: decodeJson(payload, "payload", task.kind),
      carry: await task.decodeCarry(carry),
    };
  } catch {
    return null;
  }
}

async function newRow(task: Task, job: EnqueueJob, now: Date): Promise<Row> {
  return {
    id: job.id,
    version: 0,
    runCount: 0,
    failureCount: 0,
    priority: job.priority,
    visibleAt: new Date(dueAt(job, now)),
    payload: decodeJson(job.payload, "payload", job.kind),
    carry: await task.decodeCarry(null),
    journal: [],
  };
}

/** By the producer's clock, since the database's has not been asked: only other jobs of the same call see it. */
function dueAt(job: EnqueueJob, now: Date): number {
  return job.runAt ?? now.getTime() + (job.delayMs ?? 0);
}

function mergedEntry(row: Row, job: EnqueueJob, note: string, now: Date): JournalEntry {
  return {
    jobId: row.id,
    kind: job.kind,
    runNo: row.runCount,
    outcome: "merged",
    note,
    attachment: null,
    detail: null,
    worker: null,
    startedAt: null,
    recordedAt: now,
  };
}
