import type { Names } from "../names.ts";
import { epochMs, lookedUp, type Statement, statement } from "./statement.ts";

/**
 * Makes due scheduled jobs of some kinds claimable, the longest due first, as if they had arrived now. Bounded for
 * each kind and tier; what another transaction holds is passed over.
 *
 * A statement of its own: rows that one part of a statement updates are invisible to its other parts.
 * Index: `queue_scheduled_idx (kind_id, priority, visible_at) where scheduled`, entered behind the due mark of its
 * kind and tier, so that neither foreign kinds nor a million future jobs are walked.
 *
 * Parameters: 1 kind ids · 2 limit per kind, for each of its tiers · 3–5 due marks per kind for tier 0–2 (epoch ms).
 * Returns what was promoted per kind and tier, with the first and the last due time.
 */
export function promote(n: Names): Statement {
  return statement(
    "promote",
    `with kind as materialized (
  select u.* from unnest($1::int4[], $2::int4[], $3::float8[], $4::float8[], $5::float8[]) u(kind_id, room, due0, due1, due2)
  join ${n.of("kinds")} k on k.id = u.kind_id and k.paused_at is null
), picked as materialized (
  select s.job_id, p.tier, s.visible_at from kind k
  cross join lateral (values (0::int2, k.due0), (1::int2, k.due1), (2::int2, k.due2)) p(tier, due_mark)
  cross join lateral (
    select q.job_id, q.visible_at from ${n.of("queue")} q
    where q.scheduled and q.kind_id = k.kind_id and q.priority = p.tier
      and q.visible_at >= to_timestamp(p.due_mark / 1000) and q.visible_at <= ${n.of("clock")}()
    order by q.visible_at limit k.room for update skip locked) s
), placed as materialized (
  select p.job_id, nextval(pg_get_serial_sequence(${n.literal(n.of("queue"))}, 'seq')) as seq
  from (select x.job_id from picked x order by x.tier, x.visible_at) p
), promoted as (
  update ${n.of("queue")} q set scheduled = false, seq = p.seq from placed p where ${lookedUp("q.job_id", "p.job_id")}
  returning q.kind_id, q.priority, q.visible_at
)
select p.kind_id, p.priority::int4 as priority, count(*)::int4 as n,
  ${epochMs("min(p.visible_at)")} as first_ms, ${epochMs("max(p.visible_at)")} as last_ms
from promoted p group by p.kind_id, p.priority`,
  );
}
