import {
  type ClaimedJob,
  dateOf,
  fromUuid,
  type JobRecord,
  type JobStatus,
  type JournalEntry,
  type JournalOutcome,
  type Priority,
  readHeaders,
  type StaleClaim,
} from "@venturi/core";
import type { Row } from "./database.ts";

const priorities: readonly Priority[] = ["high", "normal", "low"];

/** What a claimed row does not say itself. */
export interface ClaimTerms {
  readonly kind: string;
  /** The lease of jobs that have none of their own, in milliseconds. */
  readonly leaseMs: number;
  /** The instant of the claim, in epoch milliseconds of the database clock. */
  readonly claimedMs: number;
}

export function toClaimedJob(row: Row, terms: ClaimTerms): ClaimedJob {
  const headers = row["headers"];
  const leaseMs = (row["own_lease_ms"] as number | null) ?? terms.leaseMs;
  return {
    id: fromUuid(row["job_id"] as string),
    kind: terms.kind,
    priority: toPriority(row["priority"]),
    payload: toText(row["payload"]),
    carry: row["carry"] as string | null,
    headers: headers === null ? null : readHeaders(headers as string),
    runCount: row["run_count"] as number,
    failureCount: row["failure_count"] as number,
    latencyMs: row["latency_ms"] as number,
    leaseMs,
    leaseExpiresAt: dateOf(terms.claimedMs + leaseMs),
  };
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
