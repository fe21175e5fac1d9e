import type { Names } from "../names.ts";
import {
  claimedJob,
  claimInfo,
  claimUpdate,
  isFree,
  isUntouched,
  noJob,
  unended,
} from "./claim-terms.ts";
import { bounded, epochMs, msUntil, type Statement, statement } from "./statement.ts";
import { foundMember, walkMembers, walkStart, walkStartColumns } from "./walk.ts";

/**
 * Claims up to a limit of due jobs in one statement of three steps, so that several claimers at once each find work:
 *
 * 1. an unlocked probe of what waits per kind and tier, bounded by the limit (`present` is the first of each, `probe`
 *    as many as could be taken);
 * 2. quotas per kind and tier (`shape`, `quota`), cut by each kind's room and by the turns of the priority rotation
 *    (`turns_v1`);
 * 3. a locked walk per kind and tier (`picked`), `LIMIT quota FOR UPDATE SKIP LOCKED`: what another claimer holds is
 *    walked past, mostly without trying its lock (`tried`); locking the probed rows themselves would leave overlapping
 *    claimers with nothing. What a kind and tier cannot fill goes to the others (`spare`, `spilled`, `placed`).
 *
 * Where all that waits is one kind of one tier, the quota is the limit and the probe falls away.
 *
 * Index: `queue_ready_idx (kind_id, priority, seq) where not scheduled`, in every step, entered behind the mark of
 * its kind and tier. The update touches no indexed column, so that it stays heap-only.
 *
 * A row that a merge has changed since this statement began is claimed as the merge left it, but its body is read as
 * it was: then its version differs, `stale` in `more` says so, and {@link claimedBodies} reads it again.
 *
 * A kind is claimed of only while its number still has its name: where the tables have been made again, the number may be
 * another kind's.
 *
 * Claims nothing when a scheduled job of these kinds is due (`due`): it has to be promoted first, since what one
 * statement promotes it cannot also claim. With `ignore_due` it claims all the same. `held` says that a due job could not
 * be claimed although there was room for it.
 *
 * Parameters: 1 worker · 2 limit · 3 kind ids · 4 room per kind · 5 lease ms per kind · 6 backstop per kind ·
 * 7 rotation counter · 8 ratio or null · 9–11 ready marks per kind for tier 0–2 (seq) · 12–14 due marks (epoch ms) ·
 * 15 excluded job ids · 16 ignore_due (0/1) · 17 whether to tell what was found (0/1) · 18 name per kind.
 */
export function claim(n: Names): Statement {
  const claimable = (pair: string, position: string, also?: string) =>
    `q.kind_id = ${pair}.kind_id and q.priority = ${pair}.tier and not q.scheduled
      and ${position} and ${isFree("q", "$15", also)}`;
  /** From the first row that `present` found, so that what lies before it is walked past only once. */
  const ready = (pair: string, also?: string) => claimable(pair, `q.seq >= ${pair}.first`, also);
  /**
   * Which rows to try to lock: those that nobody has touched; the first one, whatever its `xmax` means; and jobs with a
   * key, since producers may be merging into them so often that somebody has nearly always touched them just now.
   */
  const tried = `(q.seq = p.first or q.dedup_key is not null or ${isUntouched("q", "p")})`;
  const anyOf = (kinds: string) => `= any (array(select w.kind_id from kind w where ${kinds}))`;
  /**
   * Whether a kind may have rows in a part of the index, so that each of its tiers is worth a probe. Cheap looks rule out
   * most kinds of a worker that has many:
   *
   * - kinds without marks: one look at all of them together, then one at each;
   * - kinds whose marks are the same for all tiers, as a long walk leaves them that found nothing: one look for each tier
   *   at all of them together.
   */
  const mayHaveRows = ({ part, marks, position, behind }: IndexPart) => {
    const [high, normal, low] = marks;
    const newest = (of: string) => `greatest(${marks.map((mark) => `${of}.${mark}`)})`;
    const isQuiet = (of: string) =>
      `${of}.${high} > 0 and ${of}.${high} = ${of}.${normal} and ${of}.${normal} = ${of}.${low}`;
    const least = `(select min(w.${high}) from kind w where ${isQuiet("w")})`;
    // In the order of the index, lest the planner choose another way.
    const any = (kinds: string, condition = "true") => `select true from ${n.of("queue")} q
      where ${part} and q.kind_id ${kinds} and ${condition} order by q.kind_id, q.priority, q.${position} limit 1`;
    return `case when ${newest("k")} = 0 then
        coalesce((${any(anyOf(`${newest("w")} = 0`))}), false) and coalesce((${any("= k.kind_id")}), false)
      when ${isQuiet("k")} then exists (select 1 from (values (0::int2), (1::int2), (2::int2)) t(tier)
        cross join lateral (${any(anyOf(isQuiet("w")), `q.priority = t.tier and ${behind(least)}`)}) s)
      else true end`;
  };
  const readyPart: IndexPart = {
    part: "not q.scheduled",
    marks: ["mark0", "mark1", "mark2"],
    position: "seq",
    behind: (mark) => `q.seq > ${mark}`,
  };
  const duePart: IndexPart = {
    part: "q.scheduled",
    marks: ["due0", "due1", "due2"],
    position: "visible_at",
    behind: (mark) => `q.visible_at >= to_timestamp(${mark} / 1000)`,
  };
  const found = foundMember({
    ready:
      "(select coalesce(jsonb_agg(jsonb_build_array(p.kind_id, p.tier, p.first)), '[]') from present p)",
    due: `(select coalesce(jsonb_agg(jsonb_build_array(d.kind_id, d.tier, ${epochMs("d.at")})), '[]') from due d)`,
    when: "$17::int4 = 1",
  });
  const info = claimInfo(n, {
    wait_ms: msUntil(n, `(select min(s.at) from soon s where s.at > ${n.of("clock")}())`),
    due: "exists (select 1 from due)",
    held: "exists (select 1 from held)",
    ...walkMembers,
    found,
  });
  return statement(
    "claim",
    `with kind as materialized (
  select u.*, ${walkStartColumns(n)} from unnest($3::int4[], $4::int4[], $9::int8[], $10::int8[], $11::int8[],
      $12::float8[], $13::float8[], $14::float8[], $18::text[])
    u(kind_id, room, mark0, mark1, mark2, due0, due1, due2, name)
  join ${n.of("kinds")} k on k.id = u.kind_id and k.name = u.name and k.paused_at is null
), open as materialized (
  -- A claim that begins behind marks gets 0 for a kind that has none: no job of it was seen lately.
  select k.*, ${mayHaveRows(readyPart)} as has_ready, ${mayHaveRows(duePart)} as has_scheduled
  from kind k
), pair as materialized (
  select k.kind_id, k.room, k.has_ready, k.has_scheduled, p.* from open k cross join lateral (values
    (0::int2, k.mark0, k.due0), (1::int2, k.mark1, k.due1), (2::int2, k.mark2, k.due2)) p(tier, mark, due_mark)
), soon as materialized (
  select p.kind_id, p.tier, p.room, s.visible_at as at from pair p cross join lateral (
    select ${bounded("q.visible_at")} as visible_at from ${n.of("queue")} q
    where q.scheduled and q.kind_id = p.kind_id and q.priority = p.tier and q.visible_at >= to_timestamp(p.due_mark / 1000)
    order by q.visible_at limit 1) s
  where p.has_scheduled
), due as materialized (
  select s.kind_id, s.tier, s.room, s.at from soon s where s.at <= ${n.of("clock")}()
), present as materialized (
  select p.kind_id, p.room, p.tier, s.seq as first, ${unended} from pair p cross join lateral (
    select q.seq from ${n.of("queue")} q where ${claimable("p", "q.seq > p.mark")} order by q.seq limit 1) s
  where p.has_ready and ($16::int4 = 1 or not exists (select 1 from due))
), shape as materialized (
  -- One tier and no caps: whatever the turns, the first in order are taken.
  select count(distinct p.tier) = 1 and min(p.room) >= $2::int4 as same_turn from present p
), probe as materialized (
  select p.kind_id, p.tier, s.seq from present p cross join lateral (
    select q.seq from ${n.of("queue")} q where ${ready("p")} order by q.seq limit least(p.room, $2::int4)) s
  where (select count(*) from present) > 1
), quota as materialized (
  select p.kind_id, p.tier, least(p.room, $2::int4) as n from present p where (select count(*) from present) = 1
  union all
  select w.kind_id, w.tier, count(*)::int4 from (select p.kind_id, p.tier from probe p order by p.seq limit $2::int4) w
  where (select same_turn from shape) group by w.kind_id, w.tier
  union all
  select t.kind_id, t.priority, t.n
  from (select array_agg(w.kind_id order by w.tier, w.seq) as kinds, array_agg(w.tier order by w.tier, w.seq) as tiers
        from probe w where not (select same_turn from shape) having count(*) > 0) w
  cross join lateral ${n.of("turns_v1")}($2::int4, $7::int8, $8::int4, w.kinds, w.tiers, $3::int4[], $4::int4[]) t
), picked as materialized (
  select s.job_id, p.kind_id, p.tier, s.seq from quota z join present p on p.kind_id = z.kind_id and p.tier = z.tier
  cross join lateral (
    select q.job_id, q.seq from ${n.of("queue")} q where ${ready("p", tried)} order by q.seq limit z.n for update skip locked) s
), counted as materialized (
  select count(*)::int4 as n from picked
), spare as materialized (
  -- What had no quota, or filled it, while another kind or tier could not fill its own. A walk does not pass over
  -- what its own transaction has locked: it goes on behind the last row taken.
  select p.kind_id, p.tier, p.first, p.newest_age, p.older_ages, greatest(t.last, p.first - 1) as last,
    p.room - (select count(*) from picked x where x.kind_id = p.kind_id) as room
  from present p left join quota z on z.kind_id = p.kind_id and z.tier = p.tier cross join lateral (
    select count(*) as n, max(x.seq) as last from picked x where x.kind_id = p.kind_id and x.tier = p.tier) t
  where (select c.n from counted c) < $2::int4 and t.n >= coalesce(z.n, 0)
), spilled as materialized (
  select s.job_id, p.kind_id, p.tier, s.seq, p.room from (select * from spare order by tier) p cross join lateral (
    select q.job_id, q.seq from ${n.of("queue")} q where ${claimable("p", "q.seq > p.last", tried)} order by q.seq
    limit least(p.room, $2::int4) for update skip locked) s
  -- What a kind brings beyond its room falls away below: of the rows of its three tiers at least a third stays.
  limit (select ($2::int4 - c.n) * case when exists (select 1 from spare p where p.room < $2::int4 - c.n) then 3 else 1 end from counted c)
), placed as materialized (
  select s.job_id, s.kind_id, s.tier from (
    select s.*, row_number() over (partition by s.kind_id order by s.tier, s.seq) as place from spilled s) s
  where s.place <= s.room order by s.tier, s.seq limit $2::int4 - (select c.n from counted c)
), taken as not materialized (
  -- Read where it stands: nearly always it is all that was picked, of which a copy would be for nothing.
  select p.job_id, p.kind_id, p.tier from picked p
  union all
  select p.job_id, p.kind_id, p.tier from placed p
), claimed as (
  ${claimUpdate(n, "select t.job_id from taken t")}
), held as materialized (
  select 1 from present p cross join lateral (
    select 1 from ${n.of("queue")} q where ${ready("p")} order by q.seq limit 1
    offset (select count(*) from taken x where x.kind_id = p.kind_id and x.tier = p.tier)) s
  where (select c.n from counted c) + (select count(*) from placed) < $2::int4
    and (select count(*) from taken x where x.kind_id = p.kind_id) < p.room
  union all
  select 1 from due d where (select count(*) from taken x where x.kind_id = d.kind_id) < d.room
  limit 1
)
-- Everything that holds for all of them comes once, in a row of its own and first: a thousand jobs repeat none of it.
select ${info}, ${noJob} from ${walkStart}
union all
select null, ${claimedJob}
-- Each side has a row for every row of the other, so that any join would do. A full one rules out the nested loop,
-- which the planner would choose for the few rows that it expects.
from claimed c full join ${n.of("bodies_v1")}(array(select t.job_id from claimed t)) b on b.id = c.job_id`,
  );
}

/** A part of the index that claims walk, the marks of it by tier, and how its rows are ordered. */
interface IndexPart {
  readonly part: string;
  readonly marks: readonly [high: string, normal: string, low: string];
  readonly position: string;
  readonly behind: (mark: string) => string;
}

/** The bodies of claimed jobs, which nobody changes while the claim is held. Parameters: 1 job ids. */
export function claimedBodies(n: Names): Statement {
  return statement(
    "claimed_bodies",
    `select b.id::text as job_id, b.payload, b.headers from ${n.of("bodies_v1")}($1::uuid[]) b`,
  );
}
