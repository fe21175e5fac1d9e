import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import type { Pending } from "./merge.ts";
import { decodeJson } from "./payload-codec.ts";
import type { Priority } from "./priority.ts";
import type { EnqueueJob } from "./store.ts";
import type { Task } from "./task.ts";

/** Of a journal, a merge function sees the latest: a counter that many producers add to has an entry for each of them. */
const maxJournal = 100;

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
  /** At least the latest hundred entries, in order. */
  readonly journal: readonly JournalEntry[];
}

/** A pending job as the jobs of one call see it, those before them in the call included. */
export interface PendingRow {
  readonly id: JobId;
  version: number;
  readonly runCount: number;
  readonly failureCount: number;
  priority: Priority;
  visibleAt: number;
  /** JSON text, decoded anew for every function that sees it: it may change what it is given. */
  payload: string;
  carry: string | null;
  readonly journal: JournalEntry[];
  /** What a task makes of it, until it changes: null where the task's schemas refuse it. */
  readonly read: Map<Task, Contents | null>;
}

export interface Contents {
  readonly payload: unknown;
  readonly carry: unknown;
}

export function pendingRow(candidate: MergeCandidate): PendingRow {
  return {
    ...candidate,
    visibleAt: candidate.visibleAt.getTime(),
    journal: [...candidate.journal],
    read: new Map(),
  };
}

/** A job of the call itself, once it is stored. */
export function newRow(job: EnqueueJob, now: Date): PendingRow {
  return {
    id: job.id,
    version: 0,
    runCount: 0,
    failureCount: 0,
    priority: job.priority,
    visibleAt: dueAt(job, now),
    payload: job.payload,
    carry: null,
    journal: [],
    read: new Map(),
  };
}

function dueAt(job: EnqueueJob, now: Date): number {
  return Math.max(job.runAt ?? now.getTime() + (job.delayMs ?? 0), now.getTime());
}

/** The first row that a task can read, which is then in its `read`; the ids of those before it go to `unread`. */
export async function firstReadable(
  task: Task,
  rows: readonly PendingRow[],
  unread: JobId[],
): Promise<PendingRow | undefined> {
  for (const row of rows) {
    const contents = row.read.get(task) ?? (await readContents(task, row));
    row.read.set(task, contents);
    if (contents !== null) return row;
    unread.push(row.id);
  }
  return undefined;
}

/** Null for what today's schemas refuse. */
async function readContents(task: Task, row: PendingRow): Promise<Contents | null> {
  try {
    await task.decodePayload(row.payload);
    return {
      payload: decodeJson(row.payload, "payload", task.kind),
      carry: await task.decodeCarry(row.carry),
    };
  } catch {
    return null;
  }
}

/** What is left of a row that a job replaces. */
export function replaceRow(row: PendingRow, job: EnqueueJob, now: Date): void {
  logMerge(row, job, "replace", now);
  changeRow(row, job.payload, null);
  row.priority = job.priority;
  row.visibleAt = Math.min(row.visibleAt, dueAt(job, now));
}

/** A merge changes a row, and with it what tasks make of it. */
export function changeRow(row: PendingRow, payload: string, carry: string | null): void {
  // As the database counts: from the start again after the last.
  row.version = (row.version % 2_147_483_647) + 1;
  row.payload = payload;
  row.carry = carry;
  row.read.clear();
}

/** A merge leaves an entry, whether it changes the row or not. */
export function logMerge(row: PendingRow, job: EnqueueJob, note: string, now: Date): void {
  row.journal.push({
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
  });
}

/** The row as a merge function sees it. */
export function toPending(
  row: PendingRow,
  { payload, carry }: Contents,
): Pending<unknown, unknown> {
  return Object.freeze({
    id: row.id,
    payload,
    carry,
    runCount: row.runCount,
    failureCount: row.failureCount,
    journal: Object.freeze(row.journal.slice(-maxJournal)),
    visibleAt: new Date(row.visibleAt),
    priority: row.priority,
  });
}
