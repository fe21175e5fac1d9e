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
import { began, beganOnce, told, walked } from "./walk.ts";

/**
 * Claims everything that waits, for queues that are nearly empty: where it all fits into the limit and into each
 * kind's room, whatever the turns are they take the same. So neither tiers nor quotas are reckoned out, and a plan of
 * a third of {@link claim}'s size starts in a third of its time, which for one job is most of what a claim costs.
 *
 * Where it does not fit (`fits` is false), or something scheduled is due, it takes nothing, and locks nothing either.
 *
 * It looks from the start, and is sent only where the claim begins there. Answers as {@link claim} does; `held` says that a row that was seen could not be had.
 *
 * Parameters: 1 worker · 2 limit · 3 kind ids · 4 room per kind · 5 lease ms per kind · 6 backstop per kind ·
 * 7 excluded job ids · 8 name per kind.
 */
export function claimAll(n: Names): Statement {
  const clock = `${n.of("clock")}()`;
  // It has taken all that waited, and nothing is due.
  const found = told({ ready: "'[]'::jsonb", due: "'[]'::jsonb", when: "false" });
  const info = claimInfo(n, {
    wait_ms: msUntil(n, `(select s.at from soon s where s.at > ${clock})`),
    due: "v.due",
    held: "v.n > (select count(*) from claimed)",
    ...walked,
    found,
    fits: "v.fits",
  });
  return statement(
    "claim_all",
    `with kind as materialized (
  select k.id as kind_id, ${ofKind("$4::int4[]", "k.id")} as room, ${began(n)}
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
select ${info}, ${noJob} from state v cross join ${beganOnce}
union all
select null, ${claimedJob}
from claimed c left join lateral (
  select j.payload::text, j.headers::text, coalesce(j.version, 0) as version from ${n.of("jobs")} j
  where ${lookedUp("j.id", "c.job_id")}) b on true`,
  );
}
