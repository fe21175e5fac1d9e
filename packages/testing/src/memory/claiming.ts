import {
  type ClaimedJob,
  type ClaimRequest,
  type ClaimResult,
  priorityOfTier,
  takeTurns,
} from "@venturi/core";
import type { LiveJob, Tables } from "./tables.ts";

const maxRunCount = 2_147_483_647;
/** A job's own lease is at least this long, in milliseconds. */
const leastOwnLeaseMs = 100;

/** Promotes scheduled jobs that are due, then claims by the turns that core defines. */
export function claim(tables: Tables, request: ClaimRequest): ClaimResult {
  const kinds = request.kinds.filter(({ kind }) => !tables.pausedKinds.has(kind));
  promote(tables, { ...request, kinds });
  const excluded = new Set(request.exclude);
  const named = new Map(kinds.map((kind) => [kind.kind, kind]));
  const waiting = [...tables.live.values()]
    .filter(
      (job) =>
        named.has(job.kind) &&
        !job.scheduled &&
        job.claim === null &&
        job.runCount < maxRunCount &&
        !excluded.has(job.id),
    )
    .sort((a, b) => a.seq - b.seq);
  const { limit, turn, worker } = request;
  const taken = takeTurns({ limit, kinds, turn }, waiting)
    .map((index) => waiting[index] as LiveJob)
    .sort((a, b) => a.tier - b.tier || a.seq - b.seq);
  const waitMs = soonestMs(tables, new Set(named.keys()));
  const jobs = taken.map((job): ClaimedJob => {
    const { leaseMs: ofKind = 0, backstop = null } = named.get(job.kind) ?? {};
    const leaseMs = job.leaseMs === null ? ofKind : Math.max(job.leaseMs, leastOwnLeaseMs);
    const now = tables.now();
    const runCount = job.runCount + 1;
    const leaseExpiresAt = now + leaseMs;
    const held = { worker, claimedAt: now, leaseExpiresAt, backstop };
    tables.putLive(job.id, { ...job, runCount, claim: held });
    const body = tables.bodies.get(job.id);
    return {
      id: job.id,
      kind: job.kind,
      priority: priorityOfTier(job.tier),
      payload: body?.payload ?? "null",
      carry: job.carry,
      headers: body?.headers ?? null,
      runCount,
      failureCount: job.failureCount,
      latencyMs: now - job.visibleAt,
      leaseMs,
      leaseExpiresAt: new Date(leaseExpiresAt),
    };
  });
  return { jobs, waitMs, blocked: false };
}

/** Makes scheduled jobs that are due ready, as if they arrived now: as many of each kind and tier as the claim could take. */
function promote(tables: Tables, { kinds, limit, exclude }: ClaimRequest): void {
  const now = tables.now();
  const room = new Map(
    kinds.map((kind) => [kind.kind, Math.min(kind.limit, limit) + (exclude?.length ?? 0)]),
  );
  const due = [...tables.live.values()]
    .filter((job) => job.scheduled && room.has(job.kind) && job.visibleAt <= now)
    .sort((a, b) => a.tier - b.tier || a.visibleAt - b.visibleAt || a.seq - b.seq);
  const found = new Map<string, number>();
  for (const job of due) {
    const line = `${job.tier} ${job.kind}`;
    const n = found.get(line) ?? 0;
    if (n >= (room.get(job.kind) ?? 0)) continue;
    found.set(line, n + 1);
    tables.putLive(job.id, { ...job, scheduled: false, seq: tables.nextSeq() });
  }
}

/**
 * Milliseconds until the next scheduled job is due; null: none. Of the jobs of one kind and tier only the first counts: if
 * it is due already, those behind it are not looked at.
 */
function soonestMs(tables: Tables, kinds: ReadonlySet<string>): number | null {
  const heads = new Map<string, number>();
  for (const job of tables.live.values()) {
    if (!job.scheduled || !kinds.has(job.kind)) continue;
    const line = `${job.tier} ${job.kind}`;
    heads.set(line, Math.min(heads.get(line) ?? job.visibleAt, job.visibleAt));
  }
  const now = tables.now();
  const later = [...heads.values()].filter((at) => at > now);
  return later.length === 0 ? null : Math.min(...later) - now;
}
