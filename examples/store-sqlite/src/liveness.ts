import {
  type BeatResult,
  COUNTED_SILENCE_MS,
  type FindStaleRequest,
  type StaleClaim,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type { Database, JobRow } from "./database.ts";

interface WorkerRow {
  readonly id: WorkerId;
  readonly name: string;
  readonly worker_timeout_ms: number;
  readonly shortest_lease_ms: number;
  readonly beat_at: number;
  readonly stopping_at: number | null;
}

export function startWorker(database: Database, request: WorkerRegistration): WorkerId {
  const row = database.get<{ id: WorkerId }>(
    "insert into workers (name, worker_timeout_ms, shortest_lease_ms, beat_at) values (?, ?, ?, ?) returning id",
    request.name,
    request.workerTimeoutMs,
    request.shortestLeaseMs,
    database.now(),
  );
  return row?.id ?? 0;
}

export function stopWorker(database: Database, worker: WorkerId): void {
  database.run("update workers set stopping_at = ? where id = ?", database.now(), worker);
}

export function beat(
  database: Database,
  worker: WorkerId,
  request: WorkerRegistration,
): Omit<BeatResult, "serverUpMs"> {
  const now = database.now();
  const others = database.all<WorkerRow>(
    "select * from workers where stopping_at is null and id <> ?",
    worker,
  );
  database.run(
    `insert into workers (id, name, worker_timeout_ms, shortest_lease_ms, beat_at) values (?, ?, ?, ?, ?)
    on conflict (id) do update set beat_at = excluded.beat_at, stopping_at = null, shortest_lease_ms = excluded.shortest_lease_ms`,
    worker,
    request.name,
    request.workerTimeoutMs,
    request.shortestLeaseMs,
    now,
  );
  const judged = others.map((row) => ({
    row,
    silentMs: now - row.beat_at,
    limits: [Math.min(row.worker_timeout_ms, row.shortest_lease_ms), row.worker_timeout_ms],
  }));
  const silent = judged
    .filter(({ silentMs, limits }) => limits.some((limit) => silentMs >= limit))
    .map(({ row, silentMs }) => {
      const dead = silentMs >= row.worker_timeout_ms;
      return { worker: row.id, name: row.name, silentMs, timeoutMs: row.worker_timeout_ms, dead };
    })
    .sort((a, b) => b.silentMs - a.silentMs);
  const next = judged.flatMap(({ silentMs, limits }) =>
    limits.map((limit) => limit - silentMs).filter((ms) => ms > 0),
  );
  return {
    silent,
    nextSuspectMs: next.length === 0 ? null : Math.min(...next),
    others: judged.filter(
      ({ row, silentMs }) => silentMs < Math.min(row.worker_timeout_ms, COUNTED_SILENCE_MS),
    ).length,
  };
}

/** Silent for its own timeout, or without a row. */
export function isDead(database: Database, worker: WorkerId): boolean {
  const sql = "select 1 from workers where id = ? and beat_at + worker_timeout_ms > ?";
  return database.get(sql, worker, database.now()) === undefined;
}

/** Overdue for so long, in milliseconds, a claim is nobody's any more, though its worker lives. */
const forgottenMs = 60_000;

export function findStale(
  database: Database,
  { holders, orphans, limit }: FindStaleRequest,
): StaleClaim[] {
  const now = database.now();
  const claims = holders.flatMap(({ worker, overdueOnly }) =>
    database.all<JobRow>(
      `select * from jobs where state = 'claimed' and claimed_by = ? and (lease_expires_at <= ? or not ?)`,
      worker,
      now,
      overdueOnly ? 1 : 0,
    ),
  );
  for (const { worker, overdueOnly } of holders) if (!overdueOnly) giveUp(database, worker);
  if (orphans) {
    const orphaned = database.all<JobRow>(
      `select * from jobs where state = 'claimed' and (claimed_by not in (
        select id from workers where stopping_at is null or beat_at + worker_timeout_ms > ?) or lease_expires_at <= ?)`,
      now,
      now - forgottenMs,
    );
    // A holder that was named may have ended as well.
    const known = new Set(claims.map(({ id }) => id));
    claims.push(...orphaned.filter(({ id }) => !known.has(id)));
  }
  return claims
    .sort((a, b) => (a.lease_expires_at ?? 0) - (b.lease_expires_at ?? 0))
    .slice(0, limit)
    .map((row) => ({
      jobId: row.id,
      kind: row.kind,
      payload: row.payload,
      runCount: row.run_count,
      failureCount: row.failure_count,
      backstop: row.backstop,
      holder: row.claimed_by ?? 0,
      overdue: (row.lease_expires_at ?? 0) <= now,
    }));
}

/** A dead worker that holds nothing need not be looked for again; its next beat brings it back. */
function giveUp(database: Database, worker: WorkerId): void {
  const holds = database.get(
    "select 1 from jobs where state = 'claimed' and claimed_by = ?",
    worker,
  );
  if (holds === undefined && isDead(database, worker)) stopWorker(database, worker);
}
