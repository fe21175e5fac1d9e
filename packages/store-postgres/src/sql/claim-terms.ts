import type { Names } from "../names.ts";
import { epochMs } from "./statement.ts";

/** A job's own lease is at least this long, in milliseconds. */
const leastOwnLeaseMs = 100;

/** No claim is held for longer, in milliseconds. */
export const mostLeaseMs = 3e12;

/**
 * Whether nobody holds a row, it may run once more, and is none of those that the claim is not to bring. The planner,
 * which has no statistics of it, expects of a bare "is null" that it holds for one row in two hundred: so few that
 * collecting and sorting the whole backlog seems as good as reading its first rows in order. Of a case it expects that
 * it holds for every second; so it does of a subquery beside it, which is why that is in there.
 *
 * A subquery, since on every version it is looked up in a hash, by a kept plan too: an array would be compared one by
 * one, thousands of them with thousands of rows.
 */
export function isFree(row: string, excluded: string, also?: string): string {
  return `case when ${row}.claimed_by is null
        then ${row}.run_count < 2147483647 and ${row}.job_id not in (select unnest(${excluded}::uuid[]))${also === undefined ? "" : ` and ${also}`} else false end`;
}

/** Columns that {@link isUntouched} asks for: the transactions that the statement sees as not ended, by their age. */
export const unended = `age(pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::xid) as newest_age,
    array(select age(x.xid::xid) from pg_catalog.pg_snapshot_xip(pg_catalog.pg_current_snapshot()) x(xid)) as older_ages`;

/**
 * So many of the transactions that begin while a statement runs are told from those of long ago. Few, lest what stands
 * for several that share a lock be taken for one of them; of any further one trying the lock decides.
 */
const mostBegunMeanwhile = 10_000;

/**
 * Whether nobody has a row locked, or has changed it since this statement began: the last transaction that locked or
 * changed it had ended by then. So a claim does not try to lock what another one is just taking; and where that one has
 * been committed meanwhile, it does not lock its rows only to find that they are taken. Such a lock would stay on them,
 * and `settleCompleted` leaves what has been locked to a dearer statement.
 *
 * What it lets pass has to be locked all the same. What it does not is held, as if it were locked now.
 *
 * Where several share a lock, the row has a number of another kind, which means anything: mostly a transaction that
 * ended long ago or will begin long from now, so that trying the lock decides.
 *
 * @param seen - What has the columns {@link unended}.
 */
export function isUntouched(row: string, seen: string): string {
  const age = `age(${row}.xmax)`;
  return `case when ${row}.xmax = '0'::xid or ${row}.xmax = ${row}.xmin then true
        when ${age} between ${seen}.newest_age - ${mostBegunMeanwhile} and ${seen}.newest_age then false
        else ${age} <> all (${seen}.older_ages) end`;
}

/**
 * Whether nobody holds a row that is looked up by its id, it may run once more, and waits for no moment. In one case,
 * since a bare `not scheduled` lets the planner walk the index of the ready rather than look up the id.
 */
export function isReady(row: string): string {
  return `case when ${row}.scheduled then false else ${row}.claimed_by is null and ${row}.run_count < 2147483647 end`;
}

/** What a parameter with an element for each of the kinds ($3) holds for one of them. */
export function ofKind(array: string, kind = "q.kind_id"): string {
  return `(${array})[array_position($3::int4[], ${kind})]`;
}

/**
 * Whether a row of `kinds` is one to claim of: not paused, and still of the name that it was asked for by. Where the
 * tables have been made anew, a number may stand for another kind by now.
 */
export function isNamed(names: string, row: string): string {
  return `${row}.paused_at is null and ${row}.name = ${ofKind(`${names}::text[]`, `${row}.id`)}`;
}

// Whatever somebody wrote into the row by hand: one absurd lease must not fail everyone's claim, nor end before a
// handler can start, so that the job is claimed and handed back for ever.
const own = `case when q.lease_ms < ${leastOwnLeaseMs} then ${leastOwnLeaseMs} else q.lease_ms end`;
const lease = `least(greatest(coalesce(${own}, ${ofKind("$5::float8[]")}), 0), ${mostLeaseMs})`;

/**
 * Writes the claim into rows that are locked. Of parameters: 1 worker · 3 kind ids · 5 lease ms per kind ·
 * 6 backstop per kind.
 */
export function claimUpdate(n: Names, jobIds: string): string {
  return `update ${n.of("queue")} q set claimed_by = $1::int4, run_count = q.run_count + 1,
    -- What another run has given back since this statement began can be taken too, and begins after that run has ended.
    claimed_at = greatest(${n.of("clock")}(), least(q.visible_at, pg_catalog.clock_timestamp())),
    backstop = ${ofKind("$6::int4[]")}, lease_expires_at = ${n.of("clock")}() + make_interval(secs => ${lease} / 1000)
  -- An array, of which the planner expects few: of a join it would expect a tenth of the backlog, and walk it all.
  where q.job_id = any (array(${jobIds}))
  returning q.job_id, q.seq, q.kind_id, q.priority, q.run_count, q.failure_count, q.carry, q.visible_at, q.version,
    case when q.lease_ms is not null then ${lease} end as own_lease_ms`;
}

/** The columns of {@link claimedJob} in the row that comes first and holds for all of them. */
export const noJob = `null::text as job_id, null::int4 as kind_id, null::int4 as priority, null::float8 as seq, null::int4 as run_count,
  null::float8 as due_s, null::text as payload, null::text as more`;

/**
 * The columns of a claimed row (`c`) and its body (`b`), few as they are: each is read for every job. What most jobs
 * have nothing of comes together as `more`, JSON text, which is null for these.
 */
export const claimedJob = `c.job_id::text, c.kind_id, c.priority::int4, c.seq::float8, c.run_count,
  date_part('epoch', c.visible_at) as due_s, b.payload,
  case when c.failure_count <> 0 or c.carry is not null or c.own_lease_ms is not null or b.headers is not null or b.version <> c.version
    then json_build_object('failure_count', c.failure_count, 'carry', c.carry::text, 'own_lease_ms', c.own_lease_ms,
      'headers', b.headers, 'stale', b.version <> c.version)::text end as more`;

/**
 * The column `info`, JSON text: what holds for all jobs of a claim. `members` are pairs of a name and an SQL
 * expression, evaluated in this order.
 */
export function claimInfo(n: Names, members: Readonly<Record<string, string>>): string {
  const all = {
    clock_ms: epochMs(`${n.of("clock")}()`),
    isolation: "current_setting('transaction_isolation')",
    ...members,
  };
  const pairs = Object.entries(all).map(([name, value]) => `'${name}', ${value}`);
  return `json_build_object(${pairs.join(", ")})::text as info`;
}
