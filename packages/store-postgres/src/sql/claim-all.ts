import type { Names } from "../names.ts";
import {
  claimedJob,
  claimInfo,
  claimUpdate,
  isFree,
  isNamed,
  isReady,
  noJob,
  ofKind,
} from "./claim-terms.ts";
import { bounded, lookedUp, msUntil, type Statement, statement } from "./statement.ts";
import { foundMember, walkMembers, walkStart, walkStartColumns } from "./walk.ts";

/**
 * Claims everything that waits, for queues that are nearly empty. If it all fits into the limit and into each kind's room,
 * it does not matter whose turn it is. So neither tiers nor quotas are computed: the plan is a third of the size of
 * {@link claim}'s and starts in a third of its time, which for one job is most of what a claim costs.
 *
 * If it does not fit (`fits` is false), or a scheduled job is due, it claims nothing, and locks nothing.
 *
 * It looks from the start, so it is sent only where a claim begins there. It answers as {@link claim} does; `held` says
 * that a row which it saw could not be claimed.
 *
 * Parameters: 1 worker · 2 limit · 3 kind ids · 4 room per kind · 5 lease ms per kind · 6 backstop per kind ·
 * 7 excluded job ids · 8 name per kind.
 */
export function claimAll(n: Names): Statement {
  const clock = `${n.of("clock")}()`;
  // Where it claims at all, nothing is left waiting, and nothing is due.
  const found = foundMember({ ready: "'[]'::jsonb", due: "'[]'::jsonb", when: "false" });
  const info = claimInfo(n, {
    wait_ms: msUntil(n, `(select s.at from soon s where s.at > ${clock})`),
    due: "v.due",
    held: "v.n > (select count(*) from claimed)",
    ...walkMembers,
    found,
    fits: "v.fits",
  });
  return statement(
    "claim_all",
    `with kind as materialized (
  select k.id as kind_id, ${ofKind("$4::int4[]", "k.id")} as room, ${walkStartColumns(n)}
  from ${n.of("kinds")} k where k.id = any ($3::int4[]) and ${isNamed("$8", "k")}
), soon as materialized (
  select ${bounded("min(s.visible_at)")} as at from kind p
  cross join (values (0::int2), (1::int2), (2::int2)) t(tier) cross join lateral (
    select q.visible_at from ${n.of("queue")} q
    where q.scheduled and q.kind_id = p.kind_id and q.priority = t.tier order by q.visible_at limit 1) s
  having count(*) > 0
), seen as materialized (
  select s.job_id, p.kind_id, p.room from kind p cross join lateral (
    select q.job_id from ${n.of("queue")} q
    where q.kind_id = p.kind_id and not q.scheduled and ${isFree("q", "$7")}
    order by q.priority, q.seq limit least(p.room, $2::int4)::int8 + 1) s
  limit $2::int8 + 1
), state as materialized (
  select coalesce(sum(c.n), 0) as n, coalesce(sum(c.n), 0) <= $2::int4 and coalesce(bool_and(c.n <= c.room), true) as fits,
    coalesce((select s.at <= ${clock} from soon s), false) as due
  from (select count(*)::int4 as n, max(s.room) as room from seen s group by s.kind_id) c
), claimed as (
  ${claimUpdate(
    n,
    `select q.job_id from ${n.of("queue")} q
      where q.job_id = any (array(select s.job_id from seen s where (select v.fits and not v.due from state v)))
        and ${isReady("q")}
      for update skip locked`,
  )}
)
select ${info}, ${noJob} from state v cross join ${walkStart}
union all
select null, ${claimedJob}
from claimed c left join lateral (
  select j.payload::text, j.headers::text, coalesce(j.version, 0) as version from ${n.of("jobs")} j
  where ${lookedUp("j.id", "c.job_id")}) b on true`,
  );
}
