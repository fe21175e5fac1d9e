import {
  type JobRecord,
  type JournalEntry,
  priorityOfTier,
  readHeaders,
  type WorkerId,
} from "@venturi/core";
import type { Database, JobRow } from "./database.ts";

interface EntryRow {
  readonly job_id: string;
  readonly kind: string;
  readonly run_no: number;
  readonly outcome: JournalEntry["outcome"];
  readonly note: string | null;
  readonly attachment: string | null;
  readonly detail: string | null;
  readonly worker: string | null;
  readonly started_at: number | null;
  readonly recorded_at: number;
}

/** The latest entries of a job, in order. */
export function readEntries(database: Database, jobId: string, limit = -1): JournalEntry[] {
  const rows = database.all<EntryRow>(
    `select * from (
      select e.entry_no, e.job_id, e.kind, e.run_no, e.outcome, e.note, e.attachment, e.detail, w.name as worker, e.started_at, e.recorded_at
      from journal e left join workers w on w.id = e.worker where e.job_id = ? order by e.entry_no desc limit ?
    ) order by entry_no`,
    jobId,
    limit,
  );
  return rows.map((row) => ({
    jobId: row.job_id,
    kind: row.kind,
    runNo: row.run_no,
    outcome: row.outcome,
    note: row.note,
    attachment: parse(row.attachment),
    detail: parse(row.detail) as JournalEntry["detail"],
    worker: row.worker,
    startedAt: toDate(row.started_at),
    recordedAt: new Date(row.recorded_at),
  }));
}

export function toJobRecord(database: Database, row: JobRow): JobRecord {
  return {
    id: row.id,
    kind: row.kind,
    status: row.state,
    priority: priorityOfTier(row.tier),
    payload: parse(row.payload),
    carry: parse(row.carry),
    headers: readHeaders(row.headers),
    runCount: row.run_count,
    failureCount: row.failure_count,
    dedupKey: row.dedup_key,
    createdAt: new Date(row.created_at),
    visibleAt: row.finished_at === null ? new Date(row.visible_at) : null,
    finishedAt: toDate(row.finished_at),
    claimedBy: row.claimed_by === null ? null : workerName(database, row.claimed_by),
    leaseExpiresAt: toDate(row.lease_expires_at),
  };
}

function workerName(database: Database, id: WorkerId): string | null {
  return database.get<{ name: string }>("select name from workers where id = ?", id)?.name ?? null;
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
