import { type JobQuery, type JobStatus, toUuid } from "@venturi/core";
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  type SqlBool,
  sql,
} from "kysely";
import type { Names } from "../names.ts";
import { epochMs, type Statement, statement } from "./statement.ts";

/** Builds and compiles; it never connects. */
const builder = new Kysely<Record<string, never>>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/**
 * Jobs as they stand, newest first by id. A live job stands in the queue, a dead one in the dead table; of every
 * other the last journal entry says how it ended.
 *
 * Driven by the smallest table that can hold all answers: the queue for pending and claimed, the dead table for
 * dead, otherwise the bodies by id; a range of finish times narrows them by the journal's time index first.
 */
export function queryJobs(
  n: Names,
  query: JobQuery,
): { readonly statement: Statement; readonly values: readonly unknown[] } {
  const compiled = jobsMatching(n, query).compile(builder);
  // The text depends on the filter: preparing each form would fill the server's memory.
  return {
    statement: { ...statement("query_jobs", ""), text: compiled.sql, name: "" },
    values: compiled.parameters,
  };
}

function jobsMatching(n: Names, query: JobQuery): RawBuilder<unknown> {
  const id = sql.raw(driver(query.statuses).id);
  const conditions: RawBuilder<SqlBool>[] = [];
  if (query.statuses !== null) conditions.push(sql`status = any (${query.statuses}::text[])`);
  if (query.finishedSince !== null)
    conditions.push(sql`finished_ms >= ${query.finishedSince.getTime()}::float8`);
  if (query.finishedUntil !== null)
    conditions.push(sql`finished_ms < ${query.finishedUntil.getTime()}::float8`);
  const rows: RawBuilder<SqlBool>[] = [];
  if (query.kinds !== null) rows.push(sql`k.name = any (${query.kinds}::text[])`);
  if (query.ids !== null) rows.push(sql`${id} = any (${query.ids.map(toUuid)}::uuid[])`);
  if (query.before !== null) rows.push(sql`${id} < ${toUuid(query.before)}::uuid`);
  if (query.finishedSince !== null || query.finishedUntil !== null)
    rows.push(endedBetween(n, id, query));
  return sql`select * from (
    select ${sql.raw(columns)}, ${id} as order_id from ${sql.raw(source(n, driver(query.statuses).from))}
    ${rows.length === 0 ? sql`` : sql`where ${sql.join(rows, sql` and `)}`}
  ) j ${conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`}
  order by order_id desc limit ${query.limit}::int4`;
}

function endedBetween(
  n: Names,
  id: RawBuilder<unknown>,
  { finishedSince, finishedUntil }: JobQuery,
): RawBuilder<SqlBool> {
  const from =
    finishedSince === null
      ? sql``
      : sql`and t.recorded_at >= ${finishedSince.toISOString()}::timestamptz`;
  const until =
    finishedUntil === null
      ? sql``
      : sql`and t.recorded_at < ${finishedUntil.toISOString()}::timestamptz`;
  return sql`${id} in (select t.job_id from ${sql.raw(n.of("journal"))} t where t.outcome in ('c', 'd', 'x') ${from} ${until})`;
}

type From = "queue" | "dead" | "jobs";

function driver(statuses: readonly JobStatus[] | null): {
  readonly from: From;
  readonly id: string;
} {
  const only = (...some: JobStatus[]) =>
    statuses !== null && statuses.length > 0 && statuses.every((status) => some.includes(status));
  if (only("pending", "claimed")) return { from: "queue", id: "q.job_id" };
  if (only("dead")) return { from: "dead", id: "d.job_id" };
  return { from: "jobs", id: "b.id" };
}

/** The tables joined, with the driving one first and never optional. */
function source(n: Names, from: From): string {
  const body = `${n.of("jobs")} b`;
  const queue = `${n.of("queue")} q`;
  const dead = `${n.of("dead")} d`;
  const first = {
    jobs: `${body} left join ${queue} on q.job_id = b.id left join ${dead} on d.job_id = b.id`,
    queue: `${queue} join ${body} on b.id = q.job_id left join ${dead} on false`,
    dead: `${dead} join ${body} on b.id = d.job_id left join ${queue} on q.job_id = d.job_id`,
  }[from];
  return `${first} join ${n.of("kinds")} k on k.id = b.kind_id
    left join ${n.of("workers")} w on w.id = q.claimed_by
    left join lateral (select e.run_no, e.failure_count, e.recorded_at, e.outcome from ${n.of("journal")} e
      where e.job_id = b.id and q.job_id is null order by e.entry_no desc limit 1) e on true`;
}

const columns = `b.id::text as job_id, k.name as kind, b.payload::text as payload, b.headers::text as headers, b.dedup_key,
    ${epochMs("b.created_at")} as created_ms, coalesce(q.priority, d.priority, b.priority)::int4 as priority,
    case when q.job_id is not null then case when q.claimed_by is null then 'pending' else 'claimed' end
      when d.job_id is not null then 'dead' when e.outcome = 'x' then 'cancelled' else 'completed' end as status,
    coalesce(q.carry, d.carry)::text as carry, coalesce(q.run_count, d.run_count, e.run_no) as run_count,
    coalesce(q.failure_count, d.failure_count, e.failure_count) as failure_count, w.name as claimed_by,
    ${epochMs("q.visible_at")} as visible_ms, ${epochMs("q.lease_expires_at")} as lease_expires_ms,
    case when q.job_id is null then ${epochMs("coalesce(d.finished_at, e.recorded_at)")} end as finished_ms`;
