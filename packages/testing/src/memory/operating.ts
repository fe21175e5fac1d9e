import type {
  CleanupRequest,
  CountsByKind,
  JobId,
  JobQuery,
  JobRecord,
  JournalEntry,
  ReadJournalRequest,
  Stats,
} from "@venturi/core";
import { liveWorkers } from "./liveness.ts";
import { toJobRecord, toJournalEntry } from "./records.ts";
import { maxSpanMs, type Tables } from "./tables.ts";

export function queryJobs(tables: Tables, query: JobQuery): readonly JobRecord[] {
  const { statuses, kinds, ids, finishedSince, finishedUntil, before, limit } = query;
  return [...tables.bodies.values()]
    .filter(
      ({ id, kind }) =>
        (kinds === null || kinds.includes(kind)) &&
        (ids === null || ids.includes(id)) &&
        (before === null || id < before),
    )
    .map((body) => toJobRecord(tables, body))
    .filter(
      ({ status, finishedAt }) =>
        (statuses === null || statuses.includes(status)) &&
        (finishedSince === null || (finishedAt !== null && finishedAt >= finishedSince)) &&
        (finishedUntil === null || (finishedAt !== null && finishedAt < finishedUntil)),
    )
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit);
}

export function readJournal(
  tables: Tables,
  { jobId, limit }: ReadJournalRequest,
): readonly JournalEntry[] {
  const entries = tables.journals.get(jobId) ?? [];
  const first = limit === undefined ? 0 : Math.max(0, entries.length - limit);
  return entries.slice(first).map((entry) => toJournalEntry(tables, entry));
}

export function stats(tables: Tables): Stats {
  const now = tables.now();
  const live = [...tables.live.values()];
  const pending = live.filter(({ claim }) => claim === null);
  const ages: Record<string, number> = Object.create(null);
  for (const { kind, visibleAt } of pending) {
    if (visibleAt <= now) ages[kind] = Math.max(ages[kind] ?? 0, now - visibleAt);
  }
  return {
    pendingByKind: countByKind(pending),
    scheduledByKind: countByKind(pending.filter(({ visibleAt }) => visibleAt > now)),
    oldestPendingAgeMsByKind: ages,
    claimed: live.length - pending.length,
    deadByKind: countByKind([...tables.dead.values()]),
    workers: liveWorkers(tables).length,
  };
}

function countByKind(jobs: readonly { readonly kind: string }[]): CountsByKind {
  const counts: Record<string, number> = Object.create(null);
  for (const { kind } of jobs) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** Deletes ended jobs with their journals, then, unless only one kind was meant, workers that are gone; returns how many jobs. */
export function cleanup(tables: Tables, request: CleanupRequest): number {
  const { finishedBefore, kind, statuses } = request;
  const before = finishedBefore.getTime();
  let deleted = 0;
  for (const body of [...tables.bodies.values()]) {
    const last = tables.journals.get(body.id)?.at(-1);
    if (tables.live.has(body.id) || last === undefined || last.recordedAt >= before) continue;
    if (kind !== null && body.kind !== kind) continue;
    if (!(statuses as readonly string[]).includes(last.outcome)) continue;
    forget(tables, body.id);
    deleted += 1;
  }
  if (kind === null) forgetWorkers(tables, before);
  return deleted;
}

/** Entries of theirs then name no worker. */
function forgetWorkers(tables: Tables, before: number): void {
  const now = tables.now();
  for (const row of [...tables.workers.values()]) {
    const holds = [...tables.live.values()].some(({ claim }) => claim?.worker === row.id);
    const silent = row.beatAt < now - Math.min(row.workerTimeoutMs, maxSpanMs);
    if (row.beatAt < before && silent && !holds) tables.workers.delete(row.id);
  }
}

function forget(tables: Tables, id: JobId): void {
  tables.bodies.delete(id);
  tables.dead.delete(id);
  tables.journals.delete(id);
  for (const [incoming, into] of tables.incoming) if (into === id) tables.incoming.delete(incoming);
}

export function retry(tables: Tables, id: JobId): boolean {
  const job = tables.dead.get(id);
  if (job === undefined) return false;
  const { finishedAt: _, ...state } = job;
  const raised = {
    ...state,
    seq: tables.nextSeq(),
    visibleAt: tables.now(),
    scheduled: false,
    failureCount: 0,
    version: job.version + 1,
  };
  tables.dead.delete(id);
  tables.putLive(id, { ...raised, claim: null });
  tables.log({ outcome: "requeued" }, raised);
  return true;
}

export function cancel(tables: Tables, id: JobId): boolean {
  const job = tables.live.get(id);
  if (job === undefined || job.claim !== null) return false;
  tables.putLive(id, undefined);
  tables.log({ outcome: "cancelled" }, job);
  return true;
}
