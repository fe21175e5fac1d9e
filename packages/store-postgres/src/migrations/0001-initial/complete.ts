import type { Names } from "../../names.ts";

/**
 * `complete_v1`: completes a run inside the transaction that calls it. A claim that is no longer held raises VT004,
 * so that the transaction cannot commit what the run did.
 */
export function complete(n: Names): string[] {
  return [
    `create function ${n.of("complete_v1")}(p_worker integer, p_job uuid, p_run integer, p_note text, p_attachment jsonb) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as ${n.body}
begin
  with ended as (
    delete from ${n.of("queue")} q where q.job_id = p_job and q.claimed_by = p_worker
      and q.run_count = p_run
    returning q.job_id, q.run_count, q.claimed_at, q.kind_id, q.failure_count
  )
  insert into ${n.of("journal")} (recorded_at, started_at, job_id, kind_id, run_no, failure_count, worker_id, outcome, note, attachment)
  select ${n.of("clock")}(), e.claimed_at, e.job_id, e.kind_id, e.run_count, e.failure_count, p_worker, 'c',
    p_note, p_attachment from ended e;
  if not found then
    raise exception 'run % of job % no longer holds its claim', p_run, p_job
      using errcode = 'VT004', hint = 'Roll back: another run of the job may be under way.';
  end if;
end
${n.body}`,
  ];
}
