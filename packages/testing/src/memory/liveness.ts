import {
  type BeatResult,
  COUNTED_SILENCE_MS,
  type FindStaleRequest,
  type StaleClaim,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import { type Claim, type LiveJob, maxSpanMs, type Tables, type WorkerRow } from "./tables.ts";

/** A claim that has been overdue for so long is nobody's any more, though its worker lives. */
const forgottenMs = 60_000;

export function startWorker(tables: Tables, registration: WorkerRegistration): WorkerId {
  const id = tables.nextWorker();
  const beatAt = tables.now();
  tables.workers.set(id, { ...pick(registration), id, beatAt, stoppingAt: null });
  return id;
}

export function stopWorker(tables: Tables, worker: WorkerId): void {
  const row = tables.workers.get(worker);
  if (row !== undefined) tables.workers.set(worker, { ...row, stoppingAt: tables.now() });
}

export function beat(
  tables: Tables,
  worker: WorkerId,
  registration: WorkerRegistration,
): Omit<BeatResult, "serverUpMs"> {
  const now = tables.now();
  const others = [...tables.workers.values()].filter(
    ({ id, stoppingAt }) => id !== worker && stoppingAt === null,
  );
  const known = tables.workers.get(worker);
  const { shortestLeaseMs } = registration;
  tables.workers.set(worker, {
    ...(known === undefined ? pick(registration) : { ...known, shortestLeaseMs }),
    id: worker,
    beatAt: now,
    stoppingAt: null,
  });
  const silent = others
    .map((row) => ({ row, suspectAt: suspectAt(row), deadAt: deadAt(row) }))
    .filter((other) => other.suspectAt <= now || other.deadAt <= now)
    .map(({ row, deadAt }) => ({
      worker: row.id,
      name: row.name,
      silentMs: now - row.beatAt,
      timeoutMs: row.workerTimeoutMs,
      dead: deadAt <= now,
    }))
    .sort((a, b) => b.silentMs - a.silentMs);
  const next = others
    .flatMap((row) => [suspectAt(row), deadAt(row)].filter((at) => at > now).slice(0, 1))
    .map((at) => at - now);
  return {
    silent,
    nextSuspectMs: next.length === 0 ? null : Math.min(...next),
    others: others.filter((row) => deadAt(row) > now && row.beatAt + COUNTED_SILENCE_MS > now)
      .length,
  };
}

function pick(registration: WorkerRegistration): WorkerRegistration {
  const { name, kinds, pollMaxMs, workerTimeoutMs, shortestLeaseMs } = registration;
  return { name, kinds: [...kinds], pollMaxMs, workerTimeoutMs, shortestLeaseMs };
}

function deadAt({ beatAt, workerTimeoutMs }: WorkerRow): number {
  return beatAt + Math.min(workerTimeoutMs, maxSpanMs);
}

function suspectAt({ beatAt, workerTimeoutMs, shortestLeaseMs }: WorkerRow): number {
  return beatAt + Math.min(workerTimeoutMs, shortestLeaseMs, maxSpanMs);
}

/** A worker that its own row calls dead: silent for its own timeout, or gone without a row. */
export function deadHolder(tables: Tables, worker: WorkerId): boolean {
  const row = tables.workers.get(worker);
  return row === undefined || deadAt(row) <= tables.now();
}

/** Workers that have neither stopped nor been given up, whenever they have beaten. */
export function presentWorkers(tables: Tables): readonly WorkerRow[] {
  return [...tables.workers.values()].filter((row) => row.stoppingAt === null);
}

/** Those of them that are not silent for their whole timeout. */
export function liveWorkers(tables: Tables): readonly WorkerRow[] {
  return presentWorkers(tables).filter((row) => deadAt(row) > tables.now());
}

export function findStale(
  tables: Tables,
  { holders, orphans, limit }: FindStaleRequest,
): readonly StaleClaim[] {
  const wanted = new Map(holders.map(({ worker, overdueOnly }) => [worker, overdueOnly]));
  const claims = staleClaims(
    tables,
    ({ worker }, overdue) => wanted.has(worker) && (overdue || wanted.get(worker) === false),
  ).slice(0, limit);
  // All that they held has been dealt with: nobody need look for them again.
  for (const { worker, overdueOnly } of holders) {
    if (overdueOnly || claims.length >= limit) continue;
    const row = tables.workers.get(worker);
    const holds = [...tables.live.values()].some(({ claim }) => claim?.worker === worker);
    if (row?.stoppingAt === null && !holds && deadHolder(tables, worker))
      stopWorker(tables, worker);
  }
  if (!orphans || claims.length >= limit) return claims;
  const orphaned = staleClaims(tables, ({ worker, leaseExpiresAt }, overdue) => {
    const row = tables.workers.get(worker);
    return (
      row === undefined ||
      (row.stoppingAt !== null && (overdue || deadHolder(tables, worker))) ||
      leaseExpiresAt <= tables.now() - forgottenMs
    );
  });
  const known = new Set(claims.map(({ jobId }) => jobId));
  return [...claims, ...orphaned.filter(({ jobId }) => !known.has(jobId))].slice(0, limit);
}

function staleClaims(
  tables: Tables,
  wanted: (claim: Claim, overdue: boolean) => boolean,
): readonly StaleClaim[] {
  const now = tables.now();
  return [...tables.live.values()]
    .filter((job): job is LiveJob & { readonly claim: Claim } => job.claim !== null)
    .map((job) => ({ job, overdue: job.claim.leaseExpiresAt <= now }))
    .filter(({ job, overdue }) => wanted(job.claim, overdue))
    .sort((a, b) => a.job.claim.leaseExpiresAt - b.job.claim.leaseExpiresAt)
    .map(({ job, overdue }) => ({
      jobId: job.id,
      kind: job.kind,
      payload: tables.bodies.get(job.id)?.payload ?? "null",
      runCount: job.runCount,
      failureCount: job.failureCount,
      backstop: job.claim.backstop,
      holder: job.claim.worker,
      overdue,
      leaseExpiresAt: new Date(job.claim.leaseExpiresAt),
    }));
}
