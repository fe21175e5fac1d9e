/**
 * Fills venturi's tables directly, since millions of jobs by way of the queue would take longer than what is
 * measured. The rows are those that the migrations of @venturi/store-postgres describe (`schema.sql` there).
 */

const day = "interval '1 day'";
const ids = (jobs: number) =>
  `select gen_random_uuid() as id, g from generate_series(1, ${jobs}) g`;
const insertBodies = `b as (insert into venturi_jobs (id, created_at, kind_id, priority, payload)
  select id, now() - ${day}, kind_id, 1, '{"id": 0, "pad": "xx"}' from t returning id)`;

function kindRows(names: string): string {
  return `insert into venturi_kinds (name) ${names} on conflict (name) do nothing`;
}

/** Makes sure that a kind is known under an id of its own. */
export function ownKind(kind: string): string {
  return kindRows(`select '${kind}'`);
}

/** Jobs that have ended well, with one run each. */
export function finished(kind: string, jobs: number): string {
  return `with t as materialized (select i.*, k.id as kind_id from (${ids(jobs)}) i, venturi_kinds k where k.name = '${kind}'),
  ${insertBodies}
  insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
  select now() - ${day} + g * interval '1 ms', now() - ${day}, id, kind_id, 1, 0, 'c' from t`;
}

/** Jobs that are due tomorrow, one after another. */
export function scheduled(kind: string, jobs: number): string {
  return `with t as materialized (select i.*, k.id as kind_id from (${ids(jobs)}) i, venturi_kinds k where k.name = '${kind}'),
  ${insertBodies}
  insert into venturi_queue (visible_at, job_id, kind_id, priority, scheduled)
  select now() + ${day} + g * interval '1 ms', id, kind_id, 1, true from t`;
}

/** Due jobs of other kinds than a worker's, half of them older than anything of its own. */
export function foreign(kinds: number, jobs: number): string[] {
  return [
    kindRows(`select 'foreign_' || g from generate_series(0, ${kinds - 1}) g`),
    `with t as materialized (select i.*, k.id as kind_id from (${ids(jobs)}) i
      join venturi_kinds k on k.name = 'foreign_' || (i.g % ${kinds})),
  ${insertBodies}
  insert into venturi_queue (visible_at, job_id, kind_id, priority)
  select now() - ${day}, id, kind_id, 1 from t order by g`,
  ];
}

/** Jobs that have died. */
export function dead(kind: string, jobs: number): string {
  return `with t as materialized (select i.*, k.id as kind_id from (${ids(jobs)}) i, venturi_kinds k where k.name = '${kind}'),
  ${insertBodies},
  d as (insert into venturi_dead (job_id, seq, visible_at, finished_at, kind_id, run_count, failure_count, version, priority)
    select id, nextval('venturi_queue_seq_seq'), now() - ${day}, now() - ${day}, kind_id, 20, 20, 0, 1 from t)
  insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
  select now() - ${day} + g * interval '1 ms', now() - ${day}, id, kind_id, 20, 20, 'd' from t`;
}

/** Jobs at the head of the queue that a worker elsewhere, alive and well, holds. */
export function heldByOthers(kind: string, jobs: number): string[] {
  return [
    `insert into venturi_workers (name, started_at, beat_at, poll_max_ms, worker_timeout_ms, shortest_lease_ms, kinds, code_version)
     values ('elsewhere', now(), now() + ${day}, 30000, 1e9, 1e9, '{${kind}}', 1)`,
    `with t as materialized (select i.*, k.id as kind_id from (${ids(jobs)}) i, venturi_kinds k where k.name = '${kind}'),
  ${insertBodies}
  insert into venturi_queue (visible_at, job_id, kind_id, priority, claimed_by, claimed_at, lease_expires_at, run_count)
  select now() - ${day}, t.id, kind_id, 1, w.id, now(), now() + ${day}, 1 from t, venturi_workers w
  where w.name = 'elsewhere'`,
  ];
}
