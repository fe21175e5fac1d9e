import { VenturiError } from "./errors.ts";
import { failureMessage } from "./failure-note.ts";
import type { JobId } from "./job-id.ts";
import { type Decision, isConstantMerge, isDecision, type MergeFunction } from "./merge.ts";
import { decodeJson } from "./payload-codec.ts";
import {
  type Contents,
  changeRow,
  firstReadable,
  logMerge,
  type MergeCandidate,
  newRow,
  type PendingRow,
  pendingRow,
  replaceRow,
  toPending,
} from "./pending-row.ts";
import { isPriority, type Priority } from "./priority.ts";
import { ignoreRejection, isPromise } from "./schema.ts";
import { quotes } from "./schema-issue.ts";
import type { EnqueueJob } from "./store.ts";
import type { Task } from "./task.ts";

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
      readonly carry?: string;
      /** Epoch milliseconds; undefined: unchanged. */
      readonly visibleAt?: number;
      readonly priority?: Priority;
    } & ChosenCandidate);

export interface ChosenCandidate {
  readonly candidate: JobId;
  readonly version: number;
  readonly runCount: number;
}

/** A job of a call, and the task whose merge function is to be asked about it. */
export interface UndecidedJob {
  readonly job: EnqueueJob;
  /** Absent: its constant merge decides, in the store; what that makes of the pending job is foreseen here. */
  readonly task?: Task | undefined;
}

export interface MergePlan {
  /** The jobs with their decisions, in order; up to the one that failed, where one did. */
  readonly jobs: readonly EnqueueJob[];
  /** Candidates that today's schemas refuse; they neither block nor take part. */
  readonly skipped: readonly JobId[];
  /**
   * The job that cannot be decided about: `merge` when the function threw, returned a promise or something that is
   * no decision; what an enqueue rejects with when the payload or carry that it gave is refused.
   */
  readonly failure: { readonly index: number; readonly error: unknown } | null;
}

export interface MergePlanOptions {
  /** The producer's clock: only other jobs of the same call see times by it. */
  readonly now: Date;
  /** Jobs that an earlier call brought in already: nothing will become of them. */
  readonly known?: ReadonlySet<JobId>;
}

/**
 * Asks the merge functions about the jobs of one call and one key, in order: a later job meets what an earlier one
 * has made of the pending one, or the earlier one itself.
 */
export async function planMerges(
  jobs: readonly UndecidedJob[],
  candidates: readonly MergeCandidate[],
  { now, known = new Set() }: MergePlanOptions,
): Promise<MergePlan> {
  const rows = candidates.map(pendingRow);
  const repeated = new Set([...known, ...candidates.map(({ id }) => id)]);
  const skipped = new Set<JobId>();
  const decided: EnqueueJob[] = [];
  for (const [index, { job, task }] of jobs.entries()) {
    // The store knows its id and stores nothing. Should that have changed meanwhile, this is refused as outdated.
    if (repeated.has(job.id)) {
      decided.push(task === undefined ? job : insert(job, []));
      continue;
    }
    repeated.add(job.id);
    if (task === undefined) {
      foresee(job, rows, now);
      decided.push(job);
      continue;
    }
    const unread: JobId[] = [];
    const row = await firstReadable(task, rows, unread);
    for (const id of unread) skipped.add(id);
    try {
      decided.push(
        row === undefined ? insert(job, unread) : await decide({ job, task, row, rows, now }),
      );
    } catch (error) {
      return { jobs: decided, skipped: [...skipped], failure: { index, error } };
    }
    if (row === undefined) rows.push(newRow(job, now));
  }
  return { jobs: decided, skipped: [...skipped], failure: null };
}

function insert(job: EnqueueJob, skipped: readonly JobId[]): EnqueueJob {
  return { ...job, decision: { action: "insert", skipped } };
}

/** What a constant merge, which the store decides, will have made of the pending jobs. */
function foresee(job: EnqueueJob, rows: PendingRow[], now: Date): void {
  const [row] = rows;
  if (row === undefined || job.merge === "independent") rows.push(newRow(job, now));
  else if (job.merge === "keep") logMerge(row, job, "keep", now);
  else replaceRow(row, job, now);
}

interface Meeting {
  readonly job: EnqueueJob;
  readonly task: Task;
  readonly row: PendingRow;
  readonly rows: PendingRow[];
  readonly now: Date;
}

async function decide({ job, task, row, rows, now }: Meeting): Promise<EnqueueJob> {
  const decision = askMerge(task, job, row);
  if (decision.decision === "independent") {
    rows.push(newRow(job, now));
    return { ...job, decision: { action: "independent" } };
  }
  const chosen = { candidate: row.id, version: row.version, runCount: row.runCount };
  if (decision.decision === "keep") {
    logMerge(row, job, "keep", now);
    return { ...job, decision: { action: "keep", ...chosen } };
  }
  if (decision.decision !== "with") {
    replaceRow(row, job, now);
    return { ...job, decision: { action: "replace", ...chosen } };
  }
  // Validated like an enqueued one; what the task computes from a payload at enqueue comes from this one.
  const { payload, leaseMs } = await task.prepare(decision.payload);
  const carry =
    decision.carry === undefined ? undefined : (task.encodeCarry(decision.carry) ?? undefined);
  if (carry !== undefined) await task.decodeCarry(carry);
  const { visibleAt, priority } = decision;
  logMerge(row, job, "with", now);
  changeRow(row, payload, carry ?? row.carry);
  if (visibleAt !== undefined) row.visibleAt = visibleAt.getTime();
  if (priority !== undefined) row.priority = priority;
  return {
    ...job,
    leaseMs,
    decision: {
      action: "with",
      ...chosen,
      payload,
      ...(carry === undefined ? {} : { carry }),
      ...(visibleAt === undefined ? {} : { visibleAt: visibleAt.getTime() }),
      ...(priority === undefined ? {} : { priority }),
    },
  };
}

function askMerge(task: Task, job: EnqueueJob, row: PendingRow): Decision<unknown, unknown> {
  const fail = (what: string, cause?: unknown) =>
    new VenturiError(
      "merge",
      `the merge function of ${JSON.stringify(task.kind)} ${what}; nothing was enqueued`,
      cause === undefined ? {} : { cause },
    );
  const incoming = decodeJson(job.payload, "payload", job.kind);
  const existing = toPending(row, row.read.get(task) as Contents);
  // What it was given may have been changed by it: whoever comes next reads it anew.
  row.read.clear();
  let decision: unknown;
  try {
    decision = (task.merge as MergeFunction<unknown, unknown>)(incoming, existing);
  } catch (error) {
    const message = failureMessage(error).slice(0, 300);
    const isTold = quotes(message, incoming) || quotes(message, existing.payload);
    throw fail(`threw: ${isTold ? "see the cause" : message}`, error);
  }
  if (isPromise(decision)) {
    ignoreRejection(decision);
    throw fail("returned a promise: it must be synchronous");
  }
  if (isDecision(decision) && isSound(decision)) return decision;
  throw fail("returned no decision: return Merge.keep(), replace(), with(…) or independent()");
}

/** Whether a decision, which may have been put together by hand, is one that can be carried out. Never throws. */
function isSound(decision: Decision<unknown, unknown>): boolean {
  try {
    if (decision.decision !== "with") return isConstantMerge(decision.decision);
    const { visibleAt, priority } = decision;
    const isTimely = visibleAt === undefined || !Number.isNaN(visibleAt.getTime());
    return isTimely && (priority === undefined || isPriority(priority));
  } catch {
    return false;
  }
}
