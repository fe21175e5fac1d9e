import type { Names } from "../names.ts";
import {
  after,
  epochMs,
  heldAndPutBack,
  horizon,
  lookedUp,
  notify,
  oldPlace,
  oneMore,
  rows,
  type Statement,
  silentAt,
  statement,
} from "./statement.ts";

/** A worker that its own row calls dead: silent for its own timeout, or gone without a row. */
function deadHolder(n: Names, holder: string): string {
  return `not exists (select 1 from ${n.of("workers")} w where w.id = ${holder}
    and ${silentAt(n)} > ${n.of("clock")}())`;
}

/**
 * Claims of silent workers, oldest lease first. There is no index on claim columns, on purpose: this is the one walk
 * over the live table, made once for each worker that has gone silent.
 *
 * Parameters: 1 holders · 2 those of them whose every claim is wanted, not only the overdue · 3 limit.
 */
export function findStale(n: Names): Statement {
  return statement(
    "find_stale",
    staleClaims(n, "q.claimed_by = any ($1::int4[])", `q.claimed_by = any ($2::int4[])`, "$3"),
  );
}

/**
 * Stale claims as {@link findStale} finds them, and with them those that nobody answers for: their worker has no row,
 * or one that ended or was given up and has not beaten since, or whose lease is over; or their leases ended a minute
 * ago, though their worker lives. A walk over the live table; its callers space it out. Parameters as there.
 */
export function findOrphans(n: Names): Statement {
  // Each list of workers is read once: looked up for every claim, they would be nearly all of the walk's cost.
  const beating = `${silentAt(n)} > ${n.of("clock")}()`;
  const workers = (which: string) => `(select w.id from ${n.of("workers")} w where ${which})`;
  const orphan = `q.claimed_by is not null
    and (${overdue(n, "q", "interval '1 minute'")} or q.claimed_by not in ${workers(`w.stopping_at is null or ${beating}`)}
      or ${overdue(n, "q")} and q.claimed_by in ${workers("w.stopping_at is not null")})`;
  return statement(
    "find_orphans",
    staleClaims(
      n,
      `(q.claimed_by = any ($1::int4[]) or ${orphan})`,
      `q.claimed_by = any ($2::int4[]) or ${orphan}`,
      "$3",
    ),
  );
}

/** Whether a claim's lease has passed; one without a lease, which only a hand can have written, has none to wait for. */
function overdue(n: Names, row: string, since?: string): string {
  const at = since === undefined ? "" : ` - ${since}`;
  return `coalesce(${row}.lease_expires_at, 'epoch') <= ${n.of("clock")}()${at}`;
}

function staleClaims(n: Names, which: string, all: string, limit: string): string {
  return `select s.job_id::text, k.name as kind, b.payload::text as payload, s.run_count, s.failure_count, s.backstop,
    s.claimed_by, (${overdue(n, "s")})::int4 as overdue, ${epochMs("s.lease_expires_at")} as lease_expires_ms
  from (select q.* from ${n.of("queue")} q where ${which} and (${overdue(n, "q")} or ${all})
        order by q.lease_expires_at limit ${limit}::int4) s
  left join ${n.of("jobs")} b on b.id = s.job_id join ${n.of("kinds")} k on k.id = s.kind_id
  order by s.lease_expires_at`;
}

/**
 * Gives up workers whose claims have all been recovered, so that nobody looks for them again. One that turns out to
 * live is back with its next beat. Parameters: 1 worker ids.
 */
export function giveUpWorkers(n: Names): Statement {
  return statement(
    "give_up_workers",
    `update ${n.of("workers")} g set stopping_at = ${n.of("clock")}()
  where g.id = any ($1::int4[]) and g.stopping_at is null and ${deadHolder(n, "g.id")}
    and not exists (select 1 from ${n.of("queue")} q where q.claimed_by = g.id)`,
  );
}

/**
 * Re-pends or buries stale claims, each with its journal entry. Applies only while (job, holder, run count) holds the
 * claim and it is still stale by the holder's own row: a settlement, an extension or a beat that came in between wins.
 * Locked rows are passed over.
 *
 * Index: `queue_pkey (job_id)`. Parameters, arrays: 1 job ids · 2 run counts · 3 holders · 4 outcome codes ·
 * 5 delay ms · 6 notes. Returns the positions (from 1) that were applied, and the places to which jobs have come back.
 */
export function recover(n: Names): Statement {
  return statement(
    "recover",
    `with held as materialized (
  select u.*, q.claimed_at, q.kind_id, ${oneMore("q.failure_count")} as failures
  from ${rows("$1::uuid[]", "$2::int4[]", "$3::int4[]", '$4::"char"[]', "$5::float8[]", "$6::text[]")}
    with ordinality u(job_id, run_no, holder, outcome, delay_ms, note, ord)
  cross join lateral (
    select q.* from ${n.of("queue")} q where q.job_id = u.job_id and q.claimed_by = u.holder and q.run_count = u.run_no
      and (${overdue(n, "q")} or ${deadHolder(n, "u.holder")})
    for update skip locked) q
), ended as (
  delete from ${n.of("queue")} q using held h where ${lookedUp("q.job_id", "h.job_id")} and h.outcome = 'd' returning q.*, h.failures
), buried as (
  insert into ${n.of("dead")} (job_id, seq, visible_at, finished_at, lease_ms, expires_at, kind_id, run_count, failure_count, version, priority, dedup_key, carry)
  select e.job_id, e.seq, e.visible_at, ${n.of("clock")}(), e.lease_ms, e.expires_at, e.kind_id, e.run_count, e.failures, e.version, e.priority, e.dedup_key, e.carry
  from ended e
), pended as (
  update ${n.of("queue")} q set claimed_by = null, claimed_at = null, lease_expires_at = null, backstop = null, failure_count = h.failures,
    visible_at = h.due, scheduled = h.due > ${n.of("clock")}()
  from (select h.*, ${after(n, "h.delay_ms")} as due from held h where h.outcome = 's') h where ${lookedUp("q.job_id", "h.job_id")}
  returning q.job_id, q.visible_at, q.kind_id, q.priority, case when not q.scheduled then q.seq end as seq
), logged as (
  insert into ${n.of("journal")} (recorded_at, started_at, job_id, kind_id, run_no, failure_count, worker_id, outcome, note)
  select ${n.of("clock")}(), h.claimed_at, h.job_id, h.kind_id, h.run_no, h.failures, h.holder, h.outcome, h.note from held h
)
select h.ord::int4 as ord, ${notify(
      n,
      `exists (select 1 from pended p where p.visible_at <= ${n.of("clock")}() or p.visible_at <= ${horizon(n)})`,
    )} as notified, ${oldPlace}
from ${heldAndPutBack}`,
  );
}
