import {
  type JobRecord,
  type JobStatus,
  type JournalEntry,
  priorityOfTier,
  readHeaders,
} from "@venturi/core";
import type { Body, Entry, Tables } from "./tables.ts";

/** A journal entry as callers see it. */
export function toJournalEntry(tables: Tables, entry: Entry): JournalEntry {
  return {
    jobId: entry.jobId,
    kind: entry.kind,
    runNo: entry.runNo,
    outcome: entry.outcome,
    note: entry.note,
    attachment: parse(entry.attachment),
    detail: parse(entry.detail) as JournalEntry["detail"],
    worker: entry.worker === null ? null : (tables.workers.get(entry.worker)?.name ?? null),
    startedAt: entry.startedAt === null ? null : new Date(entry.startedAt),
    recordedAt: new Date(entry.recordedAt),
  };
}

/** A job as callers see it: the live ones from their row, of the others the last journal entry says how they ended. */
export function toJobRecord(tables: Tables, body: Body): JobRecord {
  const live = tables.live.get(body.id);
  const dead = tables.dead.get(body.id);
  const last = live === undefined ? tables.journals.get(body.id)?.at(-1) : undefined;
  const claim = live?.claim ?? null;
  const state = live ?? dead;
  return {
    id: body.id,
    kind: body.kind,
    status: statusOf(tables, body),
    priority: priorityOfTier(body.tier),
    payload: parse(body.payload),
    carry: parse(state?.carry ?? null),
    headers: readHeaders(body.headers),
    runCount: state?.runCount ?? last?.runNo ?? 0,
    failureCount: state?.failureCount ?? last?.failureCount ?? 0,
    dedupKey: body.dedupKey,
    createdAt: new Date(body.createdAt),
    visibleAt: live === undefined ? null : new Date(live.visibleAt),
    finishedAt: live === undefined ? new Date(dead?.finishedAt ?? last?.recordedAt ?? 0) : null,
    claimedBy: claim === null ? null : (tables.workers.get(claim.worker)?.name ?? null),
    leaseExpiresAt: claim === null ? null : new Date(claim.leaseExpiresAt),
  };
}

function statusOf(tables: Tables, { id }: Body): JobStatus {
  const live = tables.live.get(id);
  if (live !== undefined) return live.claim === null ? "pending" : "claimed";
  if (tables.dead.has(id)) return "dead";
  return tables.journals.get(id)?.at(-1)?.outcome === "cancelled" ? "cancelled" : "completed";
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
