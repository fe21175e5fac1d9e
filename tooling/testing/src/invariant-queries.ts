/** Qualified names of what the checks read. */
export interface TableNames {
  readonly jobs: string;
  readonly queue: string;
  readonly dead: string;
  readonly journal: string;
  /** The function that shows a job's id as applications see it. */
  readonly ulid: string;
  readonly schema: string;
}

/** A statement that holds of a queue at any time, and the query that finds what contradicts it. */
export interface Invariant {
  readonly statement: string;
  /** Returns `subject` and `found`, a row for every contradiction. */
  readonly sql: (tables: TableNames) => string;
  /** It reads what is not of one moment: only what a second look finds again contradicts it. */
  readonly looksTwice?: boolean;
}

// Outcomes: c completed, p paused, r retried, d dead, s stale-recovered, l released, m merged,
// x cancelled, q requeued.
const endsARun = "outcome in ('c', 'p', 'r', 'd', 's', 'l')";
const isFailure = "outcome in ('r', 'd', 's')";

/** The clocks of two statements that follow each other are this close at most. */
const CLOCK_TOLERANCE = "interval '100 milliseconds'";

/** A row for each job: what its journal adds up to, beside what its row says. */
const summary = ({ jobs, queue, dead, journal, ulid }: TableNames) => `with entries as (
    select e.job_id, count(*) filter (where ${endsARun})::int as runs,
      count(*) filter (where ${isFailure} and e.entry_no > e.requeued_at)::int as failures,
      count(*) filter (where outcome = 'c')::int as completions,
      (array_agg(outcome order by e.entry_no desc))[1] as last,
      (array_agg(e.run_no order by e.entry_no desc))[1] as last_run_no,
      (array_agg(e.failure_count order by e.entry_no desc))[1] as last_failure_count
    from (select j.*, coalesce(max(entry_no) filter (where outcome = 'q') over (partition by job_id), 0) as requeued_at
      from ${journal} j) e group by e.job_id
  ), summary as (
    select ${ulid}(coalesce(j.id, q.job_id, d.job_id, e.job_id)) as job,
      j.id is not null as has_body, q.job_id is not null as is_live, d.job_id is not null as is_dead,
      coalesce(e.runs, 0) as runs, coalesce(e.failures, 0) as failures,
      coalesce(e.completions, 0) as completions, e.last, coalesce(e.last in ('c', 'd', 'x'), false) as ended,
      coalesce(q.run_count, d.run_count, e.last_run_no) as run_count,
      coalesce(q.failure_count, d.failure_count, e.last_failure_count) as failure_count,
      q.claimed_by, q.claimed_at, q.lease_expires_at
    from ${jobs} j full join ${queue} q on q.job_id = j.id full join ${dead} d on d.job_id = coalesce(j.id, q.job_id)
      full join entries e on e.job_id = coalesce(j.id, q.job_id, d.job_id)
  )`;

const ofSummary = (found: string, contradiction: string) => (tables: TableNames) =>
  `${summary(tables)} select job as subject, ${found} as found from summary where ${contradiction}`;

/** Everything that a look at the database can tell. */
export const invariants: readonly Invariant[] = [
  {
    statement: "failureCount is the number of failures since the last requeue",
    sql: ofSummary(
      "'has failureCount ' || failure_count || ' and ' || failures || ' failures'",
      "failure_count is distinct from failures",
    ),
  },
  {
    statement: "every run has one entry that ends it, but for the run that goes on",
    sql: ofSummary(
      "'has runCount ' || run_count || ' and ' || runs || ' ended runs'",
      "runs is distinct from run_count - (claimed_by is not null)::int",
    ),
  },
  {
    statement: "runs are numbered without holes, in the order of the journal",
    sql: ({ journal, ulid }) => `select ${ulid}(job_id) as subject,
        'has run ' || run_no || ' at place ' || place as found
      from (select job_id, run_no, row_number() over (partition by job_id order by entry_no) as place
        from ${journal} where ${endsARun}) numbered where run_no <> place`,
  },
  {
    statement: "a job has ended exactly when its last entry says so and it has left the queue",
    sql: ofSummary(
      "'is ' || (case when is_live then 'live' else 'gone' end) || ' after ' || coalesce(last::text, 'no entry')",
      "ended = is_live",
    ),
  },
  {
    statement: "a dead job, and no other, has a dead row",
    sql: ofSummary(
      "'ended with ' || coalesce(last::text, 'no entry') || (case when is_dead then ', has' else ', lacks' end) || ' one'",
      "is_dead <> coalesce(last = 'd', false)",
    ),
  },
  {
    statement: "a claimed job has a holder and a lease, and no other has",
    sql: ofSummary(
      "'has holder ' || coalesce(claimed_by::text, 'none') || ', lease ' || coalesce(lease_expires_at::text, 'none')",
      "num_nulls(claimed_by, claimed_at, lease_expires_at) not in (0, 3)",
    ),
  },
  {
    statement: "whatever is known of a job, its body is there",
    sql: ofSummary("'has none'", "not has_body"),
  },
  {
    statement: "no job is completed twice",
    sql: ofSummary("'was completed ' || completions || ' times'", "completions > 1"),
  },
  {
    statement: "two runs of a job overlap only after a lost lease or a release",
    sql: ({ journal, ulid }) => `select ${ulid}(job_id) as subject,
        'began run ' || run_no || ' at ' || started_at || ', before ' || ended_before as found
      from (select job_id, run_no, started_at,
          lag(recorded_at) over runs as ended_before, lag(outcome) over runs as outcome_before
        from ${journal} where ${endsARun} window runs as (partition by job_id order by entry_no)) paired
      where outcome_before not in ('s', 'l') and started_at < ended_before - ${CLOCK_TOLERANCE}`,
  },
  {
    statement: "no session-level advisory lock is left",
    // A lock of a transaction, and its session as it was after the commit.
    looksTwice: true,
    sql: () => `select 'process ' || l.pid as subject, 'holds ' || l.classid || '/' || l.objid as found
      from pg_locks l join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database())
        and a.state not like 'idle in transaction%' and a.state <> 'active'`,
  },
  {
    statement: "every index is valid",
    sql: ({ schema }) => `select i.indexrelid::regclass::text as subject, 'is not' as found
      from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace s on s.oid = c.relnamespace
      where s.nspname = '${schema}' and not i.indisvalid`,
  },
];
