/** The tables and statements of the limit: what any queue on this layout must at least write. */
export const schema = `
create schema if not exists bench_limit;
create table bench_limit.jobs (id uuid primary key, created_at timestamptz not null, payload jsonb not null);
create table bench_limit.queue (
  job_id uuid primary key, seq bigint generated always as identity, lease_expires_at timestamptz, claimed_by int,
  run_count int not null default 0, kind_id int not null, priority smallint not null
) with (fillfactor = 40);
create index on bench_limit.queue (kind_id, priority, seq);
create table bench_limit.journal (
  entry_no bigint generated always as identity, recorded_at timestamptz not null, job_id uuid not null,
  kind_id int not null, run_no int not null, outcome "char" not null, primary key (job_id, entry_no)
);`;

/** Payloads; also tells whoever listens. */
export const enqueueSql = `with t as (select gen_random_uuid() as id, p::jsonb as payload from unnest($1::text[]) p),
  j as (insert into bench_limit.jobs (id, created_at, payload) select id, now(), payload from t returning id),
  q as (insert into bench_limit.queue (job_id, kind_id, priority) select id, 1, 1 from j)
  select pg_notify('bench_limit', '')`;

/** Limit, worker, and where to start looking. */
export const claimSql = `with claimed as (
    update bench_limit.queue set claimed_by = $2, lease_expires_at = now() + interval '15 min', run_count = run_count + 1
    where job_id = any (array(
      select job_id from bench_limit.queue where kind_id = 1 and priority = 1 and seq > $3 and claimed_by is null
      order by seq limit $1 for update skip locked))
    returning job_id, seq, run_count)
  select c.job_id as id, c.seq::float8 as seq, c.run_count as run, j.payload::text as payload
  from claimed c join bench_limit.jobs j on j.id = c.job_id order by c.seq`;

/** Job ids and run numbers, and the worker that holds them. */
export const settleSql = `with ended as (
    delete from bench_limit.queue q using unnest($1::uuid[], $2::int[]) t(id, run)
    where q.job_id = t.id and q.claimed_by = $3 and q.run_count = t.run
    returning q.job_id, q.run_count, q.kind_id)
  insert into bench_limit.journal (recorded_at, job_id, kind_id, run_no, outcome)
  select now(), job_id, kind_id, run_count, 'c' from ended`;
