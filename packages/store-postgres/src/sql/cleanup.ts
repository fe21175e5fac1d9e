import type { Names } from "../names.ts";
import { epochMs, fromEpochMs, type Statement, silentAt, statement } from "./statement.ts";

/**
 * Deletes one batch of ended jobs with their journals, those that ended first. Safe from several processes: a batch
 * is what its locks got, the rest is left to whoever holds it.
 *
 * Ended means that the job's last entry says so: a job that died and was put back has an older one that does not
 * count. It costs what the span of time holds, so the caller keeps that short.
 * Index: `journal_time_idx` (BRIN), `journal_pkey (job_id, entry_no)`.
 *
 * Parameters: 1 finished before (epoch ms) · 2 kind name or null · 3 outcome codes · 4 limit · 5 from (epoch ms).
 * Returns how many were deleted, how many were looked at, and when the first and the last of these ended.
 */
export function cleanup(n: Names): Statement {
  return statement(
    "cleanup",
    `with ended as materialized (
  select e.job_id, e.recorded_at, e.outcome from ${n.of("journal")} e
  where e.outcome = any ($3::"char"[]) and e.recorded_at >= ${fromEpochMs("$5::float8")} and e.recorded_at < ${fromEpochMs("$1::float8")}
    and ($2::text is null or e.kind_id = (select k.id from ${n.of("kinds")} k where k.name = $2::text))
    and not exists (select 1 from ${n.of("journal")} later where later.job_id = e.job_id and later.entry_no > e.entry_no)
  order by e.recorded_at limit $4::int4
), locked as materialized (
  select s.id, e.outcome from ended e cross join lateral (
    select b.id from ${n.of("jobs")} b where b.id = e.job_id
      and not exists (select 1 from ${n.of("queue")} q where q.job_id = b.id)
    for update skip locked) s
), raised as (
  delete from ${n.of("dead")} d using locked l where d.job_id = l.id and l.outcome = 'd' returning d.job_id
), doomed as materialized (
  select l.id from locked l where l.outcome <> 'd' or l.id in (select r.job_id from raised r)
), bodies as (
  delete from ${n.of("jobs")} b using doomed d where b.id = d.id
), entries as (
  delete from ${n.of("journal")} e using doomed d where e.job_id = d.id
)
select (select count(*) from doomed)::float8 as deleted, (select count(*) from ended)::float8 as seen,
  ${epochMs("(select min(recorded_at) from ended)")} as first_ms, ${epochMs("(select max(recorded_at) from ended)")} as last_ms`,
  );
}

/** When the oldest job was enqueued, as epoch ms; no row where there are none. Index: `jobs_pkey (id)`. No parameters. */
export function cleanupStart(n: Names): Statement {
  return statement(
    "cleanup_start",
    `select ${epochMs("b.created_at")} as start_ms from ${n.of("jobs")} b order by b.id limit 1`,
  );
}

/**
 * Deletes rows of workers that hold no claims and have not beaten since before an instant. Journal entries of theirs
 * then name no worker. Parameters: 1 silent since before (epoch ms).
 */
export function cleanupWorkers(n: Names): Statement {
  return statement(
    "cleanup_workers",
    `delete from ${n.of("workers")} gone where gone.id in (
    select w.id from ${n.of("workers")} w where w.beat_at < ${fromEpochMs("$1::float8")}
      and ${silentAt(n)} < ${n.of("clock")}()
      and not exists (select 1 from ${n.of("queue")} q where q.claimed_by = w.id)
    for update skip locked)`,
  );
}
