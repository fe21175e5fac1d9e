/** One table for jobs, whatever their state; hot paths go through indexes that hold no ended jobs. */
export const schema = `
create table if not exists jobs (
  id text primary key,
  kind text not null,
  dedup_key text,
  created_at real not null,
  payload text not null,
  headers text,
  state text not null check (state in ('pending', 'claimed', 'completed', 'dead', 'cancelled')),
  tier integer not null check (tier in (0, 1, 2)),
  seq integer not null,
  visible_at real not null,
  scheduled integer not null,
  lease_ms real,
  run_count integer not null default 0,
  failure_count integer not null default 0,
  version integer not null default 0,
  carry text,
  claimed_by integer,
  claimed_at real,
  lease_expires_at real,
  backstop integer,
  finished_at real
) without rowid;
create index if not exists jobs_ready on jobs (kind, tier, seq) where state = 'pending' and not scheduled;
create index if not exists jobs_scheduled on jobs (kind, tier, visible_at) where state = 'pending' and scheduled;
create index if not exists jobs_keyed on jobs (kind, dedup_key, seq) where state = 'pending' and dedup_key is not null;
create index if not exists jobs_claimed on jobs (claimed_by) where state = 'claimed';
create index if not exists jobs_live on jobs (state, kind, visible_at) where state in ('pending', 'claimed', 'dead');
create index if not exists jobs_ended on jobs (finished_at) where finished_at is not null;

create table if not exists journal (
  entry_no integer primary key autoincrement,
  job_id text not null,
  kind text not null,
  run_no integer not null,
  failure_count integer not null,
  outcome text not null,
  note text,
  attachment text,
  detail text,
  worker integer,
  started_at real,
  recorded_at real not null,
  incoming_id text
);
create index if not exists journal_by_job on journal (job_id, entry_no);
create unique index if not exists journal_by_incoming on journal (incoming_id) where incoming_id is not null;

create table if not exists workers (
  id integer primary key autoincrement,
  name text not null,
  worker_timeout_ms real not null,
  shortest_lease_ms real not null,
  beat_at real not null,
  stopping_at real
);

create table if not exists arrivals (n integer not null);
insert into arrivals select 0 where not exists (select 1 from arrivals);
`;
