import type {
  CleanupRequest,
  CountsByKind,
  JobId,
  JobQuery,
  JobRecord,
  Stats,
} from "@venturi/core";
import type { Database, JobRow } from "./database.ts";
import { toJobRecord } from "./records.ts";

export function queryJobs(database: Database, query: JobQuery): JobRecord[] {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const where = (condition: string, value: unknown) => {
    conditions.push(condition);
    values.push(value);
  };
  const oneOf = (column: string, list: readonly string[] | null) => {
    if (list !== null) where(`${column} in (select value from json_each(?))`, JSON.stringify(list));
  };
  oneOf("state", query.statuses);
  oneOf("kind", query.kinds);
  oneOf("id", query.ids);
  if (query.finishedSince !== null) where("finished_at >= ?", query.finishedSince.getTime());
  if (query.finishedUntil !== null) where("finished_at < ?", query.finishedUntil.getTime());
  if (query.before !== null) where("id < ?", query.before);
  const filter = conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
  const sql = `select * from jobs ${filter} order by id desc limit ?`;
  return database.all<JobRow>(sql, ...values, query.limit).map((row) => toJobRecord(database, row));
}

interface KindCount {
  readonly kind: string;
  readonly state: "pending" | "claimed" | "dead";
  readonly n: number;
  readonly scheduled: number;
  readonly oldest: number | null;
}

export function stats(database: Database): Stats {
  const now = database.now();
  const rows = database.all<KindCount>(
    `select kind, state, count(*) as n, sum(visible_at > ?) as scheduled, min(visible_at) as oldest
    from jobs where state in ('pending', 'claimed', 'dead') group by state, kind`,
    now,
  );
  const of = (state: KindCount["state"], count: (row: KindCount) => number | null) => {
    const counts: Record<string, number> = Object.create(null);
    for (const row of rows) {
      const value = row.state === state ? count(row) : null;
      if (value !== null) counts[row.kind] = value;
    }
    return counts as CountsByKind;
  };
  const workers = database.get<{ n: number }>(
    "select count(*) as n from workers where stopping_at is null and beat_at + worker_timeout_ms > ?",
    now,
  );
  return {
    pendingByKind: of("pending", ({ n }) => n),
    scheduledByKind: of("pending", ({ scheduled }) => scheduled || null),
    oldestPendingAgeMsByKind: of("pending", ({ oldest }) =>
      oldest !== null && oldest <= now ? now - oldest : null,
    ),
    claimed: rows.reduce((sum, { state, n }) => sum + (state === "claimed" ? n : 0), 0),
    deadByKind: of("dead", ({ n }) => n),
    workers: workers?.n ?? 0,
  };
}

const batch = 1_000;

/** Deletes one batch of ended jobs with their journals; returns how many jobs. */
export function cleanupBatch(database: Database, request: CleanupRequest): number {
  const doomed = database.all<{ id: JobId }>(
    `select id from jobs where finished_at < ? and (? is null or kind = ?)
    and state in (select value from json_each(?)) order by finished_at limit ${batch}`,
    request.finishedBefore.getTime(),
    request.kind,
    request.kind,
    JSON.stringify(request.statuses),
  );
  const ids = JSON.stringify(doomed.map(({ id }) => id));
  database.run("delete from journal where job_id in (select value from json_each(?))", ids);
  return database.run("delete from jobs where id in (select value from json_each(?))", ids);
}

export function cleanupWorkers(database: Database, before: Date): void {
  database.run(
    `delete from workers where beat_at < ? and beat_at + worker_timeout_ms < ?
    and id not in (select claimed_by from jobs where state = 'claimed')`,
    before.getTime(),
    database.now(),
  );
}

export function retry(database: Database, id: JobId): boolean {
  const row = database.job(id);
  if (row?.state !== "dead") return false;
  database.run(
    `update jobs set state = 'pending', finished_at = null, failure_count = 0, version = version + 1,
      visible_at = ?, scheduled = 0, seq = ? where id = ?`,
    database.now(),
    database.nextSeq(),
    id,
  );
  database.log(row, { outcome: "requeued", runNo: row.run_count, failureCount: 0 });
  return true;
}

export function cancel(database: Database, id: JobId): boolean {
  const row = database.job(id);
  if (row?.state !== "pending") return false;
  database.run(
    "update jobs set state = 'cancelled', carry = null, finished_at = ? where id = ?",
    database.now(),
    id,
  );
  const { run_count: runNo, failure_count: failureCount } = row;
  database.log(row, { outcome: "cancelled", runNo, failureCount });
  return true;
}
