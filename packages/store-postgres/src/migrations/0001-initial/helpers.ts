import type { Names } from "../../names.ts";

/** Small functions: the clock, ids as people read them, outcomes by name, and the view that joins what people query. */
export function helpers(n: Names): string[] {
  return [
    // The one clock. now() is the transaction's start, which lies inside a caller's transaction; tests replace this.
    `create function ${n.of("clock")}() returns timestamptz language sql stable parallel safe
      as 'select pg_catalog.statement_timestamp()'`,

    // A job id as the 26 characters that applications see.
    `create function ${n.of("ulid")}(id uuid) returns text language sql immutable strict parallel safe as ${n.body}
      select string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + substr(b.bits, 1 + 5 * i, 5)::bit(5)::integer, 1), '' order by i)
      from (select '00' || (('x' || substr(h, 1, 16))::bit(64))::text || (('x' || substr(h, 17))::bit(64))::text as bits
            from (select replace(id::text, '-', '') as h) x) b
      cross join generate_series(0, 25) i
    ${n.body}`,

    `create function ${n.of("outcome")}(code "char") returns text language sql immutable strict parallel safe as ${n.body}
      select case code when 'c' then 'completed' when 'p' then 'paused' when 'r' then 'retried' when 'd' then 'dead'
        when 's' then 'stale-recovered' when 'l' then 'released' when 'm' then 'merged' when 'x' then 'cancelled'
        when 'q' then 'requeued' end
    ${n.body}`,

    `create view ${n.of("job_history")} as
      select ${n.of("ulid")}(j.job_id) as job, k.name as kind, j.run_no, ${n.of("outcome")}(j.outcome) as outcome,
        j.note, j.attachment, j.detail, w.name as worker, j.started_at, j.recorded_at, j.failure_count, j.entry_no, j.job_id
      from ${n.of("journal")} j
      left join ${n.of("kinds")} k on k.id = j.kind_id
      left join ${n.of("workers")} w on w.id = j.worker_id`,
  ];
}
