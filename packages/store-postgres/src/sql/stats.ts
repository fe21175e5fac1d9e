import type { Names } from "../names.ts";
import { bounded, msUntil, type Statement, silentAt, statement } from "./statement.ts";

/**
 * The queue at one moment: one statement, hence one snapshot. Reads the live rows and counts the dead ones; what has
 * completed is nowhere near it. No parameters.
 */
export function stats(n: Names): Statement {
  return statement(
    "stats",
    `with live as (
  select q.kind_id,
    count(*) filter (where q.claimed_by is null) as pending,
    count(*) filter (where q.claimed_by is null and q.visible_at > ${n.of("clock")}()) as scheduled,
    count(q.claimed_by) as claimed,
    min(${bounded("q.visible_at")}) filter (where q.claimed_by is null and q.visible_at <= ${n.of("clock")}()) as oldest
  from ${n.of("queue")} q group by q.kind_id
), dead as (
  select d.kind_id, count(*) as dead from ${n.of("dead")} d group by d.kind_id
), alive as materialized (
  select count(*) as n from ${n.of("workers")} w where w.stopping_at is null
    and ${silentAt(n)} > ${n.of("clock")}()
)
select a.n::float8 as workers, k.name as kind, coalesce(l.pending, 0)::float8 as pending, coalesce(l.scheduled, 0)::float8 as scheduled,
  coalesce(l.claimed, 0)::float8 as claimed, coalesce(d.dead, 0)::float8 as dead, -${msUntil(n, "l.oldest")} as oldest_ms
from alive a
left join (live l full join dead d on d.kind_id = l.kind_id) on true
left join ${n.of("kinds")} k on k.id = coalesce(l.kind_id, d.kind_id)
order by k.name`,
  );
}
