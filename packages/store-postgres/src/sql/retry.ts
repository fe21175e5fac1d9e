import type { Names } from "../names.ts";
import { nextVersion, notify, type Statement, statement } from "./statement.ts";

/**
 * Puts a dead job back: due now, as if it arrived now, its failures forgotten, its runs and carry kept.
 * Index: `dead_pkey (job_id)`. Parameters: 1 job id. Returns a row if it applied.
 */
export function retry(n: Names): Statement {
  return statement(
    "retry",
    `with raised as (
  delete from ${n.of("dead")} d where d.job_id = (
    select x.job_id from ${n.of("dead")} x where x.job_id = $1::uuid for update skip locked)
  returning d.*
), pended as (
  insert into ${n.of("queue")} (job_id, visible_at, kind_id, run_count, failure_count, version, priority, dedup_key, lease_ms, expires_at, carry)
  select r.job_id, ${n.of("clock")}(), r.kind_id, r.run_count, 0, ${nextVersion("r.version")}, r.priority, r.dedup_key, r.lease_ms, r.expires_at, r.carry from raised r
), logged as (
  insert into ${n.of("journal")} (recorded_at, job_id, kind_id, run_no, failure_count, outcome)
  select ${n.of("clock")}(), r.job_id, r.kind_id, r.run_count, 0, 'q' from raised r
)
select 1 as applied, ${notify(n, "true")} as notified from raised`,
  );
}
