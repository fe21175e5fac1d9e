import type pg from "pg";

/** Many jobs of one kind and priority, put straight into the tables. */
export interface Backlog {
  readonly kind: string;
  readonly count: number;
  /** 0 high, 1 normal, 2 low. */
  readonly tier?: 0 | 1 | 2;
  /** Scheduled: the first is due in this many milliseconds (or was, if negative), each further one 1 ms later. */
  readonly dueInMs?: number;
  /** Held by this worker, with a lease of an hour. */
  readonly claimedBy?: number;
}

/** The number that stands for a kind, made if need be. */
export async function kindId(pool: pg.Pool, kind: string): Promise<number> {
  await pool.query("insert into venturi_kinds (name) values ($1) on conflict do nothing", [kind]);
  const { rows } = await pool.query("select id from venturi_kinds where name = $1", [kind]);
  return rows[0].id;
}

/** Adds jobs without the cost of enqueueing them. */
export async function addBacklog(pool: pg.Pool, backlog: Backlog): Promise<void> {
  const { kind, count, tier = 1, dueInMs = null, claimedBy = null } = backlog;
  await pool.query(
    `with job as materialized (
      select gen_random_uuid() as id, n,
        venturi_clock() + make_interval(secs => coalesce($4::float8 + n, 0) / 1000) as visible_at
      from generate_series(0, $2::int4 - 1) n
    ), body as (
      insert into venturi_jobs (id, created_at, kind_id, priority, payload)
      select id, venturi_clock(), $1::int4, $3::int2, '{"n": 12345678}' from job
    )
    insert into venturi_queue
      (job_id, kind_id, priority, visible_at, scheduled, claimed_by, claimed_at, lease_expires_at, run_count)
    select id, $1::int4, $3::int2, visible_at, $4::float8 is not null, $5::int4,
      case when $5::int4 is not null then venturi_clock() end,
      case when $5::int4 is not null then venturi_clock() + interval '1 h' end,
      ($5::int4 is not null)::int4
    from job order by n`,
    [await kindId(pool, kind), count, tier, dueInMs, claimedBy],
  );
}

/** Takes every job out of the tables, and what is known of them. */
export async function removeJobs(pool: pg.Pool): Promise<void> {
  for (const table of ["queue", "jobs", "dead", "journal"])
    await pool.query(`delete from venturi_${table}`);
}
