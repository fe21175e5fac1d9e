import {
  type ClaimedJob,
  dateOf,
  FAR_FUTURE_MS,
  fromUuid,
  type JobRecord,
  type JobStatus,
  type JournalEntry,
  type JournalOutcome,
  type Priority,
  priorities,
  readHeaders,
  type StaleClaim,
} from "@venturi/core";
import type { Row } from "./database.ts";

/** What a claimed row does not say itself. */
export interface ClaimTerms {
  readonly kind: string;
  /** The lease of jobs that have none of their own, in milliseconds. */
  readonly leaseMs: number;
  /** The instant of the claim, in epoch milliseconds of the database clock. */
  readonly claimedMs: number;
}

/** What most jobs have nothing of: the column `more` of a claimed row. */
interface ClaimedMore {
  readonly failure_count: number;
  readonly carry: string | null;
  readonly own_lease_ms: number | null;
  readonly headers: string | null;
  /** A merge had changed the body while the claim was looking; null: there is none. */
  readonly stale: boolean | null;
}

/** Whether a claimed row came with a body that a merge had changed meanwhile. */
export function isStale(row: Row): boolean {
  return readMore(row)?.stale === true;
}

/** A claimed row with a body that was read later. */
export function withBody(row: Row, { payload, headers }: Row): Row {
  return { ...row, payload, more: JSON.stringify({ ...readMore(row), headers }) };
}

function readMore(row: Row): ClaimedMore | null {
  const text = row["more"];
  return typeof text === "string" ? (JSON.parse(text) as ClaimedMore) : null;
}

export function toClaimedJob(row: Row, terms: ClaimTerms): ClaimedJob {
  const more = readMore(row);
  const headers = more?.headers ?? null;
  const leaseMs = more?.own_lease_ms ?? terms.leaseMs;
  return {
    id: fromUuid(row["job_id"] as string),
    kind: terms.kind,
    priority: toPriority(row["priority"]),
    payload: toText(row["payload"]),
    carry: more?.carry ?? null,
    headers: headers === null ? null : readHeaders(headers),
    runCount: row["run_count"] as number,
    failureCount: more?.failure_count ?? 0,
    latencyMs: latencyMs(row["due_s"] as number, terms.claimedMs),
    leaseMs,
    leaseExpiresAt: dateOf(terms.claimedMs + leaseMs),
  };
}

/**
 * How long a job has been due, in whole microseconds: reckoned out here, since the server would take longer to. Of rows
 * that were written by hand any instant is brought between 1970 and the far date.
 */
function latencyMs(dueSeconds: number, claimedMs: number): number {
  const dueMs = Math.min(Math.max(dueSeconds * 1_000, 0), FAR_FUTURE_MS);
  return Math.round((claimedMs - dueMs) * 1_000) / 1_000;
}

export function toStaleClaim(row: Row): StaleClaim {
  const leaseExpiresAt = toDate(row["lease_expires_ms"]);
  return {
    jobId: fromUuid(row["job_id"] as string),
    kind: row["kind"] as string,
    payload: toText(row["payload"]),
    runCount: row["run_count"] as number,
    failureCount: row["failure_count"] as number,
    backstop: row["backstop"] as number | null,
    holder: row["claimed_by"] as number,
    overdue: row["overdue"] === 1,
    // A claim without a lease can only have been written by hand.
    ...(leaseExpiresAt === null ? {} : { leaseExpiresAt }),
  };
}

export function toJobRecord(row: Row): JobRecord {
  return {
    id: fromUuid(row["job_id"] as string),
    kind: row["kind"] as string,
    status: row["status"] as JobStatus,
    priority: toPriority(row["priority"]),
    payload: toJson(row["payload"]),
    carry: toJson(row["carry"]),
    headers: readHeaders(row["headers"] as string | null),
    runCount: row["run_count"] as number,
    failureCount: row["failure_count"] as number,
    dedupKey: row["dedup_key"] as string | null,
    createdAt: dateOf(row["created_ms"] as number),
    visibleAt: toDate(row["visible_ms"]),
    finishedAt: toDate(row["finished_ms"]),
    claimedBy: row["claimed_by"] as string | null,
    leaseExpiresAt: toDate(row["lease_expires_ms"]),
  };
}

export function toJournalEntry(row: Row): JournalEntry {
  return {
    jobId: fromUuid(row["job_id"] as string),
    kind: row["kind"] as string,
    runNo: row["run_no"] as number,
    outcome: row["outcome"] as JournalOutcome,
    note: row["note"] as string | null,
    attachment: toJson(row["attachment"]),
    detail: toJson(row["detail"]) as JournalEntry["detail"],
    worker: row["worker"] as string | null,
    startedAt: toDate(row["started_ms"]),
    recordedAt: dateOf(row["recorded_ms"] as number),
  };
}

/** A tier that no job can have, written by hand into a body, counts as normal. */
function toPriority(tier: unknown): Priority {
  return priorities[tier as number] ?? "normal";
}

function toDate(ms: unknown): Date | null {
  return ms === null ? null : dateOf(ms as number);
}

/** No text, which does not decode, where somebody has deleted the body of a job. */
function toText(payload: unknown): string {
  return (payload ?? "") as string;
}

function toJson(text: unknown): unknown {
  return text === null ? null : JSON.parse(text as string);
}
