import type { Names } from "../names.ts";
import {
  after,
  fromEpochMs,
  heldAndPutBack,
  horizon,
  isLeaseOf,
  lookedUp,
  notify,
  oldPlace,
  oneMore,
  rows,
  type Statement,
  statement,
} from "./statement.ts";

/**
 * Ends many runs in one statement: finished jobs leave the queue (dead ones to the dead table), paused, retried and
 * released ones go back to pending, and each leaves its journal entry, in the same statement or not at all.
 *
 * Applies only where (job, worker, run count) still holds the claim. A row that another transaction has locked is
 * skipped, so that it cannot hold up the rest.
 * Index: `queue_pkey (job_id)`.
 *
 * Parameters: 1 worker · arrays: 2 job ids · 3 run counts · 4 outcome codes · 5 delay ms · 6 run_at epoch ms or null ·
 * 7 carry or null · 8 note · 9 attachment · 10 detail. Returns the positions (from 1) that were applied, and the places
 * to which jobs have come back.
 */
export function settle(n: Names): Statement {
  const due = `case when h.outcome = 'l' then ${n.of("clock")}()
      when h.run_at is not null then least(greatest(${fromEpochMs("h.run_at")}, ${n.of("clock")}()), '9999-01-01T00:00:00Z') else ${after(n, "h.delay_ms")} end`;
  return statement(
    "settle",
    `with held as materialized (
  select u.*, q.claimed_at, q.kind_id, case when u.outcome in ('r', 'd') then ${oneMore("q.failure_count")} else q.failure_count end as failures
  from ${rows("$2::uuid[]", "$3::int4[]", '$4::"char"[]', "$5::float8[]", "$6::float8[]", "$7::jsonb[]", "$8::text[]", "$9::jsonb[]", "$10::jsonb[]")}
    with ordinality u(job_id, run_no, outcome, delay_ms, run_at, carry, note, attachment, detail, ord)
  cross join lateral (
    select q.* from ${n.of("queue")} q where q.job_id = u.job_id and q.claimed_by = $1::int4 and q.run_count = u.run_no
    for update skip locked) q
), ended as (
  delete from ${n.of("queue")} q using held h where ${lookedUp("q.job_id", "h.job_id")} and h.outcome in ('c', 'd')
  returning q.*, h.outcome, h.failures
), buried as (
  insert into ${n.of("dead")} (job_id, seq, visible_at, finished_at, lease_ms, expires_at, kind_id, run_count, failure_count, version, priority, dedup_key, carry)
  select e.job_id, e.seq, e.visible_at, ${n.of("clock")}(), e.lease_ms, e.expires_at, e.kind_id, e.run_count, e.failures, e.version, e.priority, e.dedup_key, e.carry
  from ended e where e.outcome = 'd'
), pended as (
  update ${n.of("queue")} q set claimed_by = null, claimed_at = null, lease_expires_at = null, backstop = null,
    failure_count = h.failures, carry = coalesce(h.carry, q.carry),
    -- Due at once it keeps its place, otherwise it waits among the scheduled.
    visible_at = h.due, scheduled = h.due > ${n.of("clock")}()
  from (select h.*, ${due} as due from held h where h.outcome in ('p', 'r', 'l')) h where ${lookedUp("q.job_id", "h.job_id")}
  returning q.job_id, q.visible_at, q.kind_id, q.priority, case when not q.scheduled then q.seq end as seq
), logged as (
  insert into ${n.of("journal")} (recorded_at, started_at, job_id, kind_id, run_no, failure_count, worker_id, outcome, note, attachment, detail)
  select ${n.of("clock")}(), h.claimed_at, h.job_id, h.kind_id, h.run_no, h.failures, $1::int4, h.outcome, h.note, h.attachment, h.detail
  from held h
)
select h.ord::int4 as ord, ${notify(
      n,
      `exists (select 1 from pended p where p.visible_at <= ${n.of("clock")}() or p.visible_at <= ${horizon(n)})`,
    )} as notified, ${oldPlace}
from ${heldAndPutBack}`,
  );
}

/**
 * The lean form of {@link settle} for runs with the same run count that completed with nothing to tell, which is
 * nearly all of them.
 *
 * It locks nothing beforehand, which would cost a WAL record a job: a claimed row that nobody has locked since the
 * claim carries the claim's own transaction as xmax, or none. What carries another is left to {@link settle}.
 * The array is wrapped, so that the planner does not count on its length, and its ids are found in one walk through
 * the index. Index: `queue_pkey (job_id)`.
 *
 * Parameters: 1 worker · 2 job ids, as the text of an array · 3 run count · 4 how many job ids. Returns how many were
 * applied, and, if that is not all of them, which.
 */
export function settleCompleted(n: Names): Statement {
  return statement(
    "settle_completed",
    `with ended as (
  delete from ${n.of("queue")} q
  where q.job_id = any ((select $2::text::uuid[])::uuid[]) and q.claimed_by = $1::int4 and q.run_count = $3::int4
    and (q.xmax = q.xmin or q.xmax = 0)
  returning q.job_id, q.run_count, q.claimed_at, q.kind_id, q.failure_count
), logged as (
  insert into ${n.of("journal")} (recorded_at, started_at, job_id, kind_id, run_no, failure_count, worker_id, outcome)
  select ${n.of("clock")}(), e.claimed_at, e.job_id, e.kind_id, e.run_count, e.failure_count, $1::int4, 'c' from ended e
)
select count(*)::int4 as applied,
  case when count(*) < $4::int4 then array_to_string(array_agg(e.job_id), ' ') end as job_ids
from ended e`,
  );
}

/**
 * What became of runs that a settlement did not apply to, looked at without a lock.
 *
 * `done`: the journal says that this run ended as it was to be written, since the answer of an earlier call was lost,
 * or that it completed in its handler's own transaction. `busy`: the claim still holds, and somebody has locked its
 * row. `lost`: otherwise.
 * Index: `journal_pkey (job_id, entry_no)`, `queue_pkey (job_id)`.
 * Parameters: 1 worker · 2 job ids · 3 run counts · 4 outcome codes, null where no entry is left · 5 ends of leases
 * (epoch ms), null where any will do. Returns one verdict each, in order.
 */
export function verdicts(n: Names): Statement {
  return statement(
    "verdicts",
    `select case
    when e.found is not null then 'done' when q.found is not null then 'busy' else 'lost' end as verdict
  from ${rows("$2::uuid[]", "$3::int4[]", '$4::"char"[]', "$5::float8[]")} with ordinality u(job_id, run_no, outcome, lease_ends_ms, ord)
  left join lateral (select 1 as found from ${n.of("journal")} e where e.job_id = u.job_id and e.run_no = u.run_no
    and e.worker_id = $1::int4 and (e.outcome = u.outcome or (e.outcome = 'c' and u.outcome is not null)) order by e.entry_no desc limit 1) e on true
  left join lateral (select 1 as found from ${n.of("queue")} q where q.job_id = u.job_id and q.claimed_by = $1::int4
    and q.run_count = u.run_no and ${isLeaseOf("u", "q")} limit 1) q on true
  order by u.ord`,
  );
}
