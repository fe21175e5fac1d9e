import { noHint } from "../../hint.ts";
import type { Names } from "../../names.ts";
import { readJobs } from "./enqueue-input.ts";
import { mergeEach } from "./enqueue-merge.ts";
import { plainPath, singlePath } from "./enqueue-plain.ts";
import { findRepeats } from "./enqueue-repeats.ts";
import { endItSoon, lockClass, longestWait } from "./lock-keys.ts";
import { buckets } from "./tables.ts";

/**
 * `enqueue_v1(jobs jsonb)`: what every producer calls, from any driver, in its own transaction or none.
 *
 * Takes an array of `{ id?, kind, payload, priority?, dedup_key?, merge?, delay_ms?, run_at?, lease_ms?, headers? }`
 * and returns `(ord, id, outcome)` in order: `enqueued`, `kept`, `replaced`, `merged` or
 * `repeated`. All or nothing.
 * Raises VT001 when an id belongs to another kind or key, VT002 for input it refuses.
 *
 * Constant merges are decided here, under the lock of their key. What a merge function has decided elsewhere, on
 * what `merge_candidates_v1` returned, comes as `decision: { action, candidate, version, run_count, payload?, carry?,
 * visible_at?, priority? }`, or `{ action: "insert", skipped: [ids] }`; it is applied if the candidate is still
 * pending with the same version and run count, else VT003 is raised ("again", with the repeats of the call in its
 * detail) and nothing is written. 55P03 says that another transaction has not ended within 30 seconds, or the
 * session's `lock_timeout`: one that has enqueued the first job of a kind, a job of a key, or one with the same id. A
 * single such wait may be followed by others. Of ids only calls that do not take the shorter ways are bounded; a
 * `dedup_key` of null keeps a call from taking them.
 *
 * plpgsql, not SQL: lock and read have to be separate statements, since one statement would read the snapshot from
 * before the lock. Jobs without a candidate are inserted as a set; only those that meet a pending job of their key,
 * or each other, are decided one by one. A call whose jobs are all new and without keys takes a shorter way, which
 * `plainPath` describes, and one of a single such job without options the shortest, `singlePath`. On the long way it
 * reads the jobs, registers new kinds, locks the keys, finds repeats, stores as a set what meets nobody, and merges
 * the rest.
 *
 * Its plans are kept with the session, and one made while a table is small would walk all of it long after it has
 * filled: hence no sequential scans, ids looked up one at a time, and no compiling of what looks dear without them.
 * Indexes: `jobs_pkey (id)`, `journal_incoming_idx (incoming_id)`, `queue_dedup_idx (kind_id, dedup_key, seq)`.
 */
export function enqueue(n: Names): string[] {
  return [
    `create function ${n.of("enqueue_v1")}(jobs jsonb) returns table (ord integer, id text, outcome text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as ${n.body}
#variable_conflict use_column
declare
  v_clock timestamptz := ${n.of("clock")}();
  v_far constant timestamptz := '9999-01-01T00:00:00Z';
  v_ids uuid[]; v_kinds text[]; v_kind_ids integer[]; v_priorities smallint[]; v_keys text[]; v_merges text[];
  v_ats timestamptz[]; v_leases double precision[]; v_payloads jsonb[]; v_headers jsonb[];
  v_buckets smallint[];
  -- What becomes of each: i insert, d decide one by one, r repeat of an id known already.
  v_states text[];
  -- Where some are decided one by one: everybody's place in the order of arrival.
  v_seqs bigint[];
  -- Of an id that stands in the call twice: its first place.
  v_firsts integer[];
  v_results uuid[]; v_outcomes text[];
  v_decisions jsonb[]; v_decided_ats timestamptz[]; v_decision jsonb; v_action text; v_found boolean; v_at timestamptz; v_tier smallint;
  v_problem text; v_soonest timestamptz; v_known record;
  v_each record; v_candidate record; v_held boolean := false; v_is_first boolean; v_last record; v_payload jsonb; v_changes integer := 0;
  v_plain boolean; v_has_options boolean; v_same_kind boolean; v_name text; v_kind integer;
  v_job jsonb; v_hint text; v_lock_timeout text;
begin
${singlePath(n)}${plainPath(n)}  else
  v_soonest := null;
${readJobs(n)}
  -- From here on somebody's transaction may be waited for: one that has a first job of its kind, a key or an id.
  v_lock_timeout := current_setting('lock_timeout');
  if v_lock_timeout = '0' then perform set_config('lock_timeout', '${longestWait}', true); end if;

  -- Look before inserting: on conflict do nothing burns an identity value on every call.
  if array_position(v_kind_ids, null) is not null then
    begin
      insert into ${n.of("kinds")} (name)
        select distinct u.kind from unnest(v_kinds, v_kind_ids) u(kind, id) where u.id is null order by u.kind
        on conflict (name) do nothing;
    exception when lock_not_available then
      raise exception 'another transaction has enqueued the first job of a kind (%), and is still open',
          (select string_agg(distinct u.kind, ', ') from unnest(v_kinds, v_kind_ids) u(kind, id) where u.id is null)
        using errcode = '55P03', hint = '${endItSoon}';
    end;
    select array_agg(k.id order by u.ord) into v_kind_ids
      from unnest(v_kinds) with ordinality u(kind, ord) join ${n.of("kinds")} k on k.name = u.kind;
  end if;

  v_results := v_ids;
  v_outcomes := array_fill('enqueued'::text, array[cardinality(v_ids)]);
  v_states := array_fill('i'::text, array[cardinality(v_ids)]);

  if exists (select 1 from unnest(v_keys) u(key) where u.key is not null) then
    select array_agg(case when u.key is null then null else (hashtext(u.kind_id::text || ':' || u.key) & ${buckets - 1})::smallint end order by u.ord)
      into v_buckets from unnest(v_kind_ids, v_keys) with ordinality u(kind_id, key, ord);
    perform ${n.of("lock_keys_v1")}(${lockClass(n)}, v_buckets::integer[]);
    -- A new statement, hence a snapshot from after the lock.
    select array_agg(case
        when u.key is null then 'i'
        when u.same_key > 1 or u.decision is not null then 'd'
        when u.merge = 'independent' then 'i'
        when exists (select 1 from ${n.of("queue")} q where q.kind_id = u.kind_id and q.dedup_key = u.key and q.claimed_by is null) then 'd'
        else 'i' end order by u.ord)
      into v_states from (
        select s.*, count(*) over (partition by s.kind_id, s.key) as same_key
        from unnest(v_kind_ids, v_keys, v_merges, v_decisions) with ordinality s(kind_id, key, merge, decision, ord)) u;
  end if;

${findRepeats(n)}
  if array_position(v_states, 'd') is not null then
    v_seqs := array(select ${nextSeq(n)} from generate_series(1, cardinality(v_ids)));
  end if;

  -- No "on conflict": it writes a WAL record more for each row. The same id at the same moment in another call is
  -- waited for, and is a unique violation then, after which a repeat finds the job.
  if array_position(v_states, 'i') is not null then
    insert into ${n.of("jobs")} (id, created_at, kind_id, priority, dedup_key, payload, headers)
    select u.id, v_clock, u.kind_id, u.priority, u.key, u.payload, u.headers
    from unnest(v_states, v_ids, v_kind_ids, v_priorities, v_keys, v_payloads, v_headers)
      with ordinality u(state, id, kind_id, priority, key, payload, headers, ord)
    where u.state = 'i' order by u.ord;
    insert into ${n.of("queue")} (job_id, seq, visible_at, scheduled, kind_id, priority, dedup_key, lease_ms)
    select u.id, coalesce(u.seq, ${nextSeq(n)}), u.at, u.at > v_clock, u.kind_id, u.priority, u.key, u.lease_ms
    from unnest(v_states, v_ids, v_seqs, v_ats, v_kind_ids, v_priorities, v_keys, v_leases)
      with ordinality u(state, id, seq, at, kind_id, priority, key, lease_ms, ord)
    where u.state = 'i' order by u.ord;
    select min(u.at) into v_soonest from unnest(v_states, v_ats) u(state, at) where u.state = 'i';
  end if;

${mergeEach(n)}
  if v_firsts is not null then
    for i in 1 .. cardinality(v_ids) loop
      if v_firsts[i] is not null then v_results[i] := v_results[v_firsts[i]]; end if;
    end loop;
  end if;

  if v_lock_timeout = '0' then perform set_config('lock_timeout', v_lock_timeout, true); end if;
  end if;

  -- Once a call, and only if a worker could sleep past it: NOTIFY takes a database-wide lock at commit. Jobs that are
  -- due need no look at the workers. All count that have neither stopped nor been given up, whenever they have beaten:
  -- a clock that has just jumped makes every beat look old.
  if v_soonest > v_clock then
    if v_soonest > v_clock + make_interval(secs => coalesce((
        select least(greatest(max(w.poll_max_ms), 0), 3e14) / 1000 from ${n.of("workers")} w where w.stopping_at is null), 0)) then
      v_soonest := null;
    end if;
  end if;
  if v_soonest is not null and (select m.notify from ${n.of("meta")} m) then
    perform pg_notify(${n.literal(n.prefix)}, '${noHint}');
  end if;

  -- Arrays are taken apart in their order, without being told.
  return query select u.ord::integer, u.id::text, coalesce(u.outcome, 'enqueued')
    from unnest(v_results, v_outcomes) with ordinality u(id, outcome, ord);
end
${n.body}`,
  ];
}

function nextSeq(n: Names): string {
  return `nextval(${n.literal(n.of("queue_seq_seq"))})`;
}
