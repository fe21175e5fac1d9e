/** What must hold of the mixture's jobs beside what holds of every queue. A row is a contradiction. */
interface Rule {
  readonly statement: string;
  readonly sql: string;
}

/** Jobs with the entries of each outcome counted. */
const counted = (kind: string) => `select venturi_ulid(j.id) as id, j.payload, e.*
  from chaos_jobs j join venturi_kinds k on k.id = j.kind_id and k.name = '${kind}'
  cross join lateral (select count(*) filter (where outcome = 'c')::int as completed,
    count(*) filter (where outcome = 'p')::int as paused, count(*) filter (where outcome = 'r')::int as retried,
    count(*) filter (where outcome = 'd')::int as dead
    from chaos_journal where job_id = j.id) e`;

export const rules: readonly Rule[] = [
  {
    statement: "a job pauses as often as its carry says, lost runs left out",
    sql: `select * from (${counted("pausing")}) c where completed = 1 and paused <> (payload->>'pauses')::int`,
  },
  {
    statement: "a job fails as often as its carry says, lost runs left out",
    sql: `select * from (${counted("failing")}) c where completed = 1 and retried <> (payload->>'failures')::int`,
  },
  {
    statement: "a permanent failure ends its job",
    sql: `select * from (${counted("hopeless")}) c where completed <> 0 or retried <> 0 or dead > 1`,
  },
  {
    statement: "a defect changes no carry",
    sql: `select * from (${counted("defective")}) c where dead <> 0 or retried > 1`,
  },
  {
    statement: "what is added under a key adds up",
    sql: `select * from (
        select coalesce(sum((payload->>'n')::int), 0)::int as stored, (select count(*)::int from chaos_journal m
          join venturi_kinds k on k.id = m.kind_id and k.name = 'adding' where m.outcome = 'm') + count(*)::int as enqueued
        from chaos_jobs j join venturi_kinds k on k.id = j.kind_id and k.name = 'adding') sums
      where stored <> enqueued`,
  },
  {
    statement: "what a handler writes in the transaction of its completion is there exactly once",
    sql: `select * from (select c.id, c.completed, array_remove(array_agg(w.run), null) as runs
        from (${counted("writing")}) c left join chaos_written w on w.id = c.id group by 1, 2) written
      where cardinality(runs) <> completed`,
  },
  {
    statement: "nothing is written by a run that did not complete",
    sql: `select w.* from chaos_written w where not exists (select from chaos_journal e
      where venturi_ulid(e.job_id) = w.id and e.run_no = w.run and e.outcome = 'c')`,
  },
];
