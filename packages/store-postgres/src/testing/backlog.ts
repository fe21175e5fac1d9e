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
  /**
   * Whether the jobs have bodies; without, nobody can claim them.
   * @defaultValue true
   */
  readonly bodies?: boolean;
}

/** The number that stands for a kind, made if need be. */
export async function kindId(pool: pg.Pool, kind: string): Promise<number> {
  await pool.query("insert into venturi_kinds (name) values ($1) on conflict do nothing", [kind]);
  const { rows } = await pool.query("select id from venturi_kinds where name = $1", [kind]);
  return rows[0].id;
}

/** Adds jobs without the cost of enqueueing them. */
export async function addBacklog(pool: pg.Pool, backlog: Backlog): Promise<void> {
  const { kind, count, tier = 1, dueInMs = null, claimedBy = null, bodies = true } = backlog;
  await pool.query(
    `with job as materialized (
      select gen_random_uuid() as id, n,
        venturi_clock() + make_interval(secs => coalesce($4::float8 + n, 0) / 1000) as visible_at
      from generate_series(0, $2::int4 - 1) n
    ), body as (
      insert into venturi_jobs (id, created_at, kind_id, priority, payload)
      select id, venturi_clock(), $1::int4, $3::int2, '{"n": 12345678}' from job where $6::boolean
    )
    insert into venturi_queue
      (job_id, kind_id, priority, visible_at, scheduled, claimed_by, claimed_at, lease_expires_at, run_count)
    select id, $1::int4, $3::int2, visible_at, $4::float8 is not null, $5::int4,
      case when $5::int4 is not null then venturi_clock() end,
      case when $5::int4 is not null then venturi_clock() + interval '1 h' end,
      ($5::int4 is not null)::int4
    from job order by n`,
    [await kindId(pool, kind), count, tier, dueInMs, claimedBy, bodies],
  );
}

/** Takes every job out of the tables, and what is known of them. */
export async function removeJobs(pool: pg.Pool): Promise<void> {
  for (const table of ["queue", "jobs", "dead", "journal"])
    await pool.query(`delete from venturi_${table}`);
}

/** Adds jobs that have completed long ago, or died. */
export async function addEnded(
  pool: pg.Pool,
  { kind, count, outcome }: { kind: string; count: number; outcome: "completed" | "dead" },
): Promise<void> {
  await pool.query(
    `with job as materialized (
      select gen_random_uuid() as id, venturi_clock() - interval '1 d' as ended_at from generate_series(1, $2::int4)
    ), body as (
      insert into venturi_jobs (id, created_at, kind_id, priority, payload)
      select id, ended_at, $1::int4, 1, '{"n": 12345678}' from job
    ), dead as (
      insert into venturi_dead
        (job_id, seq, visible_at, finished_at, kind_id, run_count, failure_count, version, priority)
      select id, 0, ended_at, ended_at, $1::int4, 1, 1, 0, 1 from job where $3::text = 'd'
    )
    insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
    select ended_at, ended_at, id, $1::int4, 1, ($3::text = 'd')::int4, $3::text::"char" from job`,
    [await kindId(pool, kind), count, outcome === "dead" ? "d" : "c"],
  );
}
