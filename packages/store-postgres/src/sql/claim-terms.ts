import type { Names } from "../names.ts";
import { epochMs } from "./statement.ts";

/** A job's own lease is at least this long, in milliseconds. */
const leastOwnLeaseMs = 100;

/** No claim is held for longer, in milliseconds. */
export const mostLeaseMs = 3e12;

/**
 * Whether nobody holds a row, it may run once more, and the claim does not exclude it.
 *
 * Written as one `case`, for the sake of the planner, which has no statistics of these columns. It expects a bare
 * `is null` to hold for one row in two hundred: so few that to collect and sort the whole backlog seems as good as to
 * read its first rows in order. It expects a `case` to hold for every second row; and the same of a subquery, which
 * therefore stands inside.
 *
 * The excluded ids are a subquery since that is hashed, on every version and by a kept plan too. An array would be
 * compared element by element: thousands of ids with thousands of rows.
 */
export function isFree(row: string, excluded: string, also?: string): string {
  return `case when ${row}.claimed_by is null
        then ${row}.run_count < 2147483647 and ${row}.job_id not in (select unnest(${excluded}::uuid[]))${also === undefined ? "" : ` and ${also}`} else false end`;
}

/** The columns that {@link isUntouched} needs: the ages of the transactions that the statement sees as not ended. */
export const unended = `age(pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::xid) as newest_age,
    array(select age(x.xid::xid) from pg_catalog.pg_snapshot_xip(pg_catalog.pg_current_snapshot()) x(xid)) as older_ages`;

/**
 * How many transactions may begin while a statement runs and still be told from those of long ago; of later ones, trying
 * the lock decides. It is few, so that the number that stands for several transactions which share a lock is seldom taken
 * for one of them.
 */
const mostBegunMeanwhile = 10_000;

/**
 * Whether nobody has locked or changed a row since this statement began: the last transaction that did so had ended by
 * then. With it a claim does not try to lock rows that another claim is just taking. Nor does it lock rows of a claim that
 * has been committed meanwhile, only to find them taken: that would leave the lock's trace on them, and `settleCompleted`
 * leaves such rows to a slower statement.
 *
 * A row for which this is true must still be locked. One for which it is false counts as locked by somebody else.
 *
 * Where several transactions share a lock, the row's `xmax` is a number of another kind, which could mean any
 * transaction: mostly one that ended long ago or has not begun, so that trying the lock decides.
 *
 * @param seen - The row source with the columns {@link unended}.
 */
export function isUntouched(row: string, seen: string): string {
  const age = `age(${row}.xmax)`;
  return `case when ${row}.xmax = '0'::xid or ${row}.xmax = ${row}.xmin then true
        when ${age} between ${seen}.newest_age - ${mostBegunMeanwhile} and ${seen}.newest_age then false
        else ${age} <> all (${seen}.older_ages) end`;
}

/**
 * Whether nobody holds a row that is looked up by its id, it may run once more, and it is not scheduled. Written as one
 * `case`, since a bare `not scheduled` lets the planner walk the index of the ready jobs instead of looking up the id.
 */
export function isReady(row: string): string {
  return `case when ${row}.scheduled then false else ${row}.claimed_by is null and ${row}.run_count < 2147483647 end`;
}

/** The element of an array parameter for one kind; the kinds' numbers are parameter 3. */
export function ofKind(array: string, kind = "q.kind_id"): string {
  return `(${array})[array_position($3::int4[], ${kind})]`;
}

/**
 * Whether a row of `kinds` may be claimed of: it is not paused, and still has the name that was asked for. Where the
 * tables have been made again, its number may stand for another kind.
 */
export function isNamed(names: string, row: string): string {
  return `${row}.paused_at is null and ${row}.name = ${ofKind(`${names}::text[]`, `${row}.id`)}`;
}

// A lease that somebody has written into the row by hand may be absurd: it must not make everyone's claim fail, nor end
// before a handler can start, so that the job is claimed and handed back for ever.
const own = `case when q.lease_ms < ${leastOwnLeaseMs} then ${leastOwnLeaseMs} else q.lease_ms end`;
const lease = `least(greatest(coalesce(${own}, ${ofKind("$5::float8[]")}), 0), ${mostLeaseMs})`;

/**
 * Writes the claim into rows that are locked. It uses these parameters: 1 worker · 3 kind ids · 5 lease ms per kind ·
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

/** The columns of {@link claimedJob}, empty, in the first row, which holds `info`. */
export const noJob = `null::text as job_id, null::int4 as kind_id, null::int4 as priority, null::float8 as seq, null::int4 as run_count,
  null::float8 as due_s, null::text as payload, null::text as more`;

/**
 * The columns of a claimed row (`c`) and its body (`b`). They are few, since each is read for every job: what most jobs
 * do not have comes together as `more`, JSON text, which is null for those.
 */
export const claimedJob = `c.job_id::text, c.kind_id, c.priority::int4, c.seq::float8, c.run_count,
  date_part('epoch', c.visible_at) as due_s, b.payload,
  case when c.failure_count <> 0 or c.carry is not null or c.own_lease_ms is not null or b.headers is not null or b.version <> c.version
    then json_build_object('failure_count', c.failure_count, 'carry', c.carry::text, 'own_lease_ms', c.own_lease_ms,
      'headers', b.headers, 'stale', b.version <> c.version)::text end as more`;

/**
 * The column `info`, JSON text: what holds for all jobs of a claim. `members` maps names to SQL expressions, which are
 * evaluated in this order.
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
