import type { Names } from "../names.ts";
import { lookedUp, type Statement, statement } from "./statement.ts";

/**
 * Ends a pending job as cancelled, with its journal entry. A claimed job and a row that somebody has locked are
 * passed over. Index: `queue_pkey (job_id)`. Parameters: 1 job id. Returns a row if it applied.
 */
export function cancel(n: Names): Statement {
  return statement(
    "cancel",
    `with held as materialized (
  select q.job_id from ${n.of("queue")} q where q.job_id = $1::uuid and q.claimed_by is null for update skip locked
), ended as (
  delete from ${n.of("queue")} q using held h where ${lookedUp("q.job_id", "h.job_id")} returning q.job_id, q.kind_id, q.run_count, q.failure_count
)
insert into ${n.of("journal")} (recorded_at, job_id, kind_id, run_no, failure_count, outcome)
select ${n.of("clock")}(), e.job_id, e.kind_id, e.run_count, e.failure_count, 'x' from ended e
returning 1 as applied`,
  );
}
