import { noHint } from "../../hint.ts";
import type { Names } from "../../names.ts";
import {
  dueOf,
  leaseOf,
  newId,
  plainPath,
  refusesHeaders,
  singlePath,
  tierOf,
} from "./enqueue-plain.ts";
import { endItSoon, longestWait } from "./lock-keys.ts";
import { buckets } from "./tables.ts";

/**
 * `enqueue_v1(jobs jsonb)`: what every producer calls, from any driver, in its own transaction or none.
 *
 * Takes an array of `{ id?, kind, payload, priority?, dedup_key?, merge?, delay_ms?, run_at?, lease_ms?, headers? }`
 * and returns `(ord, id, outcome)` in order: `enqueued`, `kept`, `replaced` or `repeated`. All or nothing.
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
 * `plainPath` describes, and one of a single such job without options the shortest, `singlePath`.
 *
 * Its plans are kept with the session, and one made while a table is small would walk all of it long after it has
 * filled: hence no sequential scans, ids looked up one at a time, and no compiling of what looks dear without them.
 * Indexes: `jobs_pkey (id)`, `journal_incoming_idx (incoming_id)`, `queue_dedup_idx (kind_id, dedup_key, seq)`.
 */
export function enqueue(n: Names): string[] {
  return [
    `create function ${n.of("merge_candidates_v1")}(keys jsonb) returns table (ord integer, candidate text, known text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as ${n.body}
#variable_conflict use_column
declare
  i integer;
begin
  -- Whoever has lost a race waits for those who hold the keys: what it would read before they commit is outdated
  -- already. Outside of a transaction the locks end with this statement.
  perform ${n.of("lock_keys_v1")}(${lockClass(n)}, array(
    select (hashtext(k.id::text || ':' || u.dedup_key) & ${buckets - 1})::integer
    from jsonb_to_recordset(keys) u(kind text, dedup_key text, wait boolean) join ${n.of("kinds")} k on k.name = u.kind
    where u.wait));
  -- The pending jobs of each { kind, dedup_key, limit?, wait?, ids? }, smallest seq first, with all that a merge function sees:
  -- of the journal the latest hundred entries, since a counter that everybody adds to has one for each of them.
  return query
  select u.ord::integer, jsonb_build_object(
      'id', q.job_id, 'version', q.version, 'run_count', q.run_count, 'failure_count', q.failure_count,
      'priority', q.priority, 'visible_ms', extract(epoch from q.visible_at) * 1000, 'payload', b.payload, 'carry', q.carry::text,
      'journal', (select coalesce(jsonb_agg(jsonb_build_object(
          'run_no', e.run_no, 'outcome', ${n.of("outcome")}(e.outcome), 'note', e.note, 'attachment', e.attachment,
          'detail', e.detail, 'worker', w.name, 'started_ms', extract(epoch from e.started_at) * 1000,
          'recorded_ms', extract(epoch from e.recorded_at) * 1000) order by e.entry_no), '[]')
        from (select j.* from ${n.of("journal")} j where j.job_id = q.job_id order by j.entry_no desc limit 100) e
        left join ${n.of("workers")} w on w.id = e.worker_id))::text, null::text
  from rows from (jsonb_to_recordset(keys) as (kind text, dedup_key text, "limit" integer)) with ordinality u(kind, dedup_key, most, ord)
  join ${n.of("kinds")} k on k.name = u.kind
  cross join lateral (select p.* from ${n.of("queue")} p
    where p.kind_id = k.id and p.dedup_key = u.dedup_key and p.claimed_by is null order by p.seq limit u.most) q
  join ${n.of("jobs")} b on b.id = q.job_id
  order by u.ord, q.seq;
  -- Of the ids that come with a key, those that an earlier call brought in: nothing will become of them.
  if jsonb_path_exists(keys, '$[*].ids') then
    return query
    select u.ord::integer, null::text, i.id::text
    from rows from (jsonb_to_recordset(keys) as (ids uuid[])) with ordinality u(ids, ord) cross join lateral unnest(u.ids) i(id)
    where exists (select 1 from ${n.of("jobs")} b where b.id = i.id)
      or exists (select 1 from ${n.of("journal")} e where e.incoming_id = i.id);
  end if;
exception when data_exception then
  -- A value that its type refuses: of which key?
  if jsonb_typeof(keys) <> 'array' then
    raise exception 'cannot read candidates: keys must be an array' using errcode = 'VT002', hint = '${readsKeys}';
  end if;
  for i in 1 .. jsonb_array_length(keys) loop
    begin
      perform from jsonb_to_recordset(jsonb_build_array(keys -> (i - 1)))
        as (kind text, dedup_key text, "limit" integer, wait boolean, ids uuid[]);
      -- Less than none is refused here as it is above.
      perform limit (keys -> (i - 1) ->> 'limit')::integer;
    exception when data_exception then
      raise exception 'cannot read candidates of key %: %', i, sqlerrm using errcode = 'VT002', hint = '${readsKeys}';
    end;
  end loop;
  raise;
end
${n.body}`,

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
  v_problem text; v_soonest timestamptz; v_candidate record; v_known record; i integer;
  v_plain boolean; v_has_options boolean; v_same_kind boolean; v_name text; v_kind integer;
  v_job jsonb; v_hint text; v_lock_timeout text;
begin
${singlePath(n)}${plainPath(n)}  else
  v_soonest := null;
  begin
    select array_agg(x.id order by x.ord), array_agg(x.kind order by x.ord), array_agg(k.id order by x.ord),
      array_agg(x.tier order by x.ord), array_agg(x.dedup_key order by x.ord), array_agg(x.merge order by x.ord),
      array_agg(least(x.due, v_far) order by x.ord), array_agg(x.lease_ms order by x.ord),
      array_agg(x.payload order by x.ord), array_agg(x.headers order by x.ord), array_agg(x.decision order by x.ord),
      array_agg(x.decided_at order by x.ord), (array_agg(p.problem order by x.ord) filter (where p.problem is not null))[1]
    into v_ids, v_kinds, v_kind_ids, v_priorities, v_keys, v_merges, v_ats, v_leases, v_payloads, v_headers, v_decisions, v_decided_ats, v_problem
    from (
      select r.ord, r.kind, r.dedup_key, ${leaseOf("r.lease_ms")} as lease_ms, r.headers, r.decision,
        (r.decision ->> 'visible_at')::timestamptz as decided_at,
        coalesce(r.payload, 'null') as payload,
        coalesce(r.id, ${newId}) as id,
        case when r.dedup_key is not null then coalesce(r.merge, 'replace') end as merge,
        ${tierOf("r.priority")} as tier,
        ${dueOf("r.run_at", "r.delay_ms")} as due,
        case
          when r.kind is null or length(r.kind) not between 1 and 200 then r.ord::text || ': kind must have 1 to 200 characters'
          when coalesce(r.priority, 'normal') not in ('high', 'normal', 'low') then r.ord::text || ': priority must be high, normal or low'
          when length(r.dedup_key) > 512 then r.ord::text || ': dedup_key must have at most 512 characters'
          when r.merge is not null and r.merge not in ('keep', 'replace', 'independent') then r.ord::text || ': merge must be keep, replace or independent'
          when r.delay_ms is not null and r.run_at is not null then r.ord::text || ': delay_ms and run_at exclude each other'
          when r.delay_ms = 'NaN' or r.lease_ms = 'NaN' or r.lease_ms < 0 then r.ord::text || ': delay_ms and lease_ms must be milliseconds'
          when r.headers is not null and jsonb_typeof(r.headers) <> 'object' then r.ord::text || ': headers must be an object'
          when ${refusesHeaders("r.headers")} then r.ord::text || ': headers must be texts'
          when r.decision is null then null
          when r.dedup_key is null or coalesce(r.decision ->> 'action', '') not in ('insert', 'independent', 'keep', 'replace', 'with')
            then r.ord::text || ': decision needs a dedup_key and an action of insert, independent, keep, replace or with'
          when r.decision ->> 'action' in ('keep', 'replace', 'with') and ((r.decision ->> 'candidate')::uuid is null
            or (r.decision ->> 'version')::integer is null or (r.decision ->> 'run_count')::integer is null)
            then r.ord::text || ': decision of keep, replace or with needs candidate, version and run_count'
          when r.decision ->> 'action' = 'with' and not r.decision ? 'payload' then r.ord::text || ': decision of with needs a payload'
          when coalesce(r.decision ->> 'priority', 'normal') not in ('high', 'normal', 'low')
            then r.ord::text || ': decision priority must be high, normal or low'
          when jsonb_typeof(r.decision -> 'visible_at') not in ('string', 'null')
            then r.ord::text || ': decision visible_at must be text'
          when ${refusesSkipped("r.decision -> 'skipped'")}
            then r.ord::text || ': decision skipped must be an array of ids as they were read'
        end as problem
      from rows from (jsonb_to_recordset(jobs) as ${columns}
      ) with ordinality r(id, kind, payload, priority, dedup_key, merge, delay_ms, run_at, lease_ms, headers, decision, ord)
    ) x left join ${n.of("kinds")} k on k.name = x.kind
    cross join lateral (select case when x.problem is not null then x.problem
      when k.id is null and x.kind ~ '[\\u0001-\\u001f\\u007f-\\u009f]' then x.ord::text || ': kind must have no control characters'
    end as problem) p;
  exception when data_exception then
    -- A value that its type refuses: of which job?
    if jsonb_typeof(jobs) <> 'array' then
      raise exception 'cannot enqueue: jobs must be an array' using errcode = 'VT002', hint = 'Nothing was enqueued.';
    end if;
    for i in 1 .. jsonb_array_length(jobs) loop
      begin
        perform from jsonb_to_recordset(jsonb_build_array(jobs -> (i - 1))) as ${columns};
      exception when data_exception then
        raise exception 'cannot enqueue job %: %', i, sqlerrm using errcode = 'VT002', hint = 'Nothing was enqueued.';
      end;
      begin
        v_decision := jobs -> (i - 1) -> 'decision';
        perform from jsonb_to_record(case when jsonb_typeof(v_decision) = 'object' then v_decision end)
          as (candidate uuid, version integer, run_count integer, visible_at timestamptz);
      exception when data_exception then
        raise exception 'cannot enqueue job %: decision: %', i, sqlerrm using errcode = 'VT002', hint = 'Nothing was enqueued.';
      end;
    end loop;
    raise;
  end;

  if v_ids is null then return; end if;
  if v_problem is not null then
    raise exception 'cannot enqueue job %', v_problem using errcode = 'VT002', hint = 'Nothing was enqueued.';
  end if;

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

  -- An id that was merged away when it first came is known by its journal entry.
  if exists (select 1 from ${n.of("journal")} e where e.incoming_id = any (v_ids)) then
    for v_known in
      select u.ord, u.id as incoming, e.job_id, b.kind_id = u.kind_id and b.dedup_key is not distinct from u.key as same
      from unnest(v_ids, v_kind_ids, v_keys) with ordinality u(id, kind_id, key, ord)
      cross join lateral (select e.job_id from ${n.of("journal")} e where e.incoming_id = u.id limit 1) e
      cross join lateral (select b.kind_id, b.dedup_key from ${n.of("jobs")} b where b.id = e.job_id limit 1) b
    loop
      if not v_known.same then ${conflict("v_known.incoming")} end if;
      v_states[v_known.ord] := 'r'; v_outcomes[v_known.ord] := 'repeated'; v_results[v_known.ord] := v_known.job_id;
    end loop;
  end if;

  -- Ids that exist already: a repeat whose first reply was lost, or a conflict.
  if exists (select 1 from ${n.of("jobs")} b where b.id = any (v_ids)) then
    for v_known in
      select u.ord, u.id as incoming, b.kind_id = u.kind_id and b.dedup_key is not distinct from u.key as same
      from unnest(v_ids, v_kind_ids, v_keys) with ordinality u(id, kind_id, key, ord)
      cross join lateral (select b.kind_id, b.dedup_key from ${n.of("jobs")} b where b.id = u.id limit 1) b
    loop
      if not v_known.same then ${conflict("v_known.incoming")} end if;
      v_states[v_known.ord] := 'r'; v_outcomes[v_known.ord] := 'repeated';
    end loop;
  end if;

  if (select count(distinct u.id) from unnest(v_ids) u(id)) < cardinality(v_ids) then
    -- An id that stands in this call twice is a repeat of its first place.
    v_firsts := array_fill(null::integer, array[cardinality(v_ids)]);
    for v_known in
      select u.ord, u.first_ord, u.id as incoming, u.kind_id = u.first_kind and u.key is not distinct from u.first_key as same
      from (select s.*, row_number() over w as nth, first_value(s.ord) over w as first_ord,
              first_value(s.kind_id) over w as first_kind, first_value(s.key) over w as first_key
            from unnest(v_ids, v_kind_ids, v_keys) with ordinality s(id, kind_id, key, ord)
            window w as (partition by s.id order by s.ord)) u
      where u.nth > 1
    loop
      if not v_known.same then ${conflict("v_known.incoming")} end if;
      v_states[v_known.ord] := 'r'; v_outcomes[v_known.ord] := 'repeated'; v_firsts[v_known.ord] := v_known.first_ord;
    end loop;
  end if;

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

  if v_buckets is not null then
    update ${n.of("keys")} k set n = k.n + 1
      where k.bucket = any (array(select u.bucket from unnest(v_states, v_buckets) u(state, bucket) where u.bucket is not null and u.state = 'i'));
    for i in select u.ord from unnest(v_states) with ordinality u(state, ord) where u.state = 'd' order by u.ord loop
      v_decision := v_decisions[i];
      v_action := coalesce(v_decision ->> 'action', v_merges[i]);
      v_found := false;
      if v_action = 'insert' then
        -- Decided by a producer that found nobody to merge with: is that still so?
        if exists (select 1 from ${n.of("queue")} q where q.kind_id = v_kind_ids[i] and q.dedup_key = v_keys[i] and q.claimed_by is null
            and not coalesce(v_decision -> 'skipped', '[]') ? q.job_id::text) then ${again} end if;
      elsif v_action <> 'independent' then
        -- Locked, so that no claim slips in between the decision and what it writes.
        select q.job_id, q.run_count, q.failure_count, q.visible_at, q.priority into v_candidate
          from ${n.of("queue")} q
          where q.kind_id = v_kind_ids[i] and q.dedup_key = v_keys[i] and q.claimed_by is null
            and (v_decision is null or (q.job_id = (v_decision ->> 'candidate')::uuid
              and q.version = (v_decision ->> 'version')::integer and q.run_count = (v_decision ->> 'run_count')::integer))
          order by q.seq limit 1 for update;
        v_found := found;
        if not v_found and v_decision is not null then ${again} end if;
      end if;
      if not v_found then
        insert into ${n.of("jobs")} (id, created_at, kind_id, priority, dedup_key, payload, headers)
          values (v_ids[i], v_clock, v_kind_ids[i], v_priorities[i], v_keys[i], v_payloads[i], v_headers[i]);
        update ${n.of("keys")} k set n = k.n + 1 where k.bucket = v_buckets[i];
        insert into ${n.of("queue")} (job_id, seq, visible_at, scheduled, kind_id, priority, dedup_key, lease_ms)
          values (v_ids[i], v_seqs[i], v_ats[i], v_ats[i] > v_clock, v_kind_ids[i], v_priorities[i], v_keys[i], v_leases[i]);
        v_soonest := least(v_soonest, v_ats[i]);
        continue;
      end if;
      v_results[i] := v_candidate.job_id;
      v_outcomes[i] := case v_action when 'keep' then 'kept' when 'replace' then 'replaced' else 'merged' end;
      if v_action <> 'keep' then
        v_at := case when v_action = 'replace' then least(v_candidate.visible_at, v_ats[i])
          when v_decided_ats[i] is null then v_candidate.visible_at
          -- A time that has passed means now, unless the job has been due for longer already.
          else least(greatest(v_decided_ats[i], least(v_candidate.visible_at, v_clock)), v_far) end;
        v_tier := case when v_action = 'replace' then v_priorities[i] else
          coalesce(case v_decision ->> 'priority' when 'high' then 0 when 'normal' then 1 when 'low' then 2 end, v_candidate.priority) end;
        update ${n.of("jobs")} b set headers = v_headers[i], priority = v_tier, version = coalesce(b.version, 0) % 2147483647 + 1,
            payload = case when v_action = 'replace' then v_payloads[i] else v_decision -> 'payload' end
          where b.id = v_candidate.job_id;
        update ${n.of("queue")} q set priority = v_tier, lease_ms = v_leases[i], version = q.version % 2147483647 + 1, visible_at = v_at,
            carry = case when v_action = 'replace' then null when v_decision ? 'carry' then v_decision -> 'carry' else q.carry end,
            scheduled = (q.scheduled or v_at > v_candidate.visible_at) and v_at > v_clock,
            -- It arrives now if this made it due; otherwise it keeps its place.
            seq = case when q.scheduled and v_at <= v_clock then v_seqs[i] else q.seq end
          where q.job_id = v_candidate.job_id;
        if v_at < v_candidate.visible_at or v_tier < v_candidate.priority then v_soonest := least(v_soonest, v_at); end if;
      end if;
      insert into ${n.of("journal")} (recorded_at, job_id, kind_id, run_no, failure_count, outcome, note, incoming_id)
        values (v_clock, v_candidate.job_id, v_kind_ids[i], v_candidate.run_count, v_candidate.failure_count, 'm', v_action, v_ids[i]);
    end loop;
  end if;

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

/** What is said to whoever passes anything else. */
const readsKeys = "Pass [{ kind, dedup_key, limit?, wait?, ids? }, …].";

const columns = `(id uuid, kind text, payload jsonb, priority text, dedup_key text,
      merge text, delay_ms double precision, run_at timestamptz, lease_ms double precision, headers jsonb, decision jsonb)`;

/** Compared as texts with ids as the database writes them: written otherwise, one would be passed over in vain. */
const refusesSkipped = (skipped: string): string =>
  `jsonb_typeof(${skipped}) not in ('array', 'null') or jsonb_typeof(${skipped}) = 'array' and jsonb_path_exists(${skipped},
            '$[*] ? (@.type() != "string" || !(@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))')`;

function nextSeq(n: Names): string {
  return `nextval(${n.literal(n.of("queue_seq_seq"))})`;
}

/**
 * The queue has changed since the producer looked: nothing is written, and the choice starts over. The detail names
 * the jobs that earlier calls have stored, so that it counts on nothing becoming of them.
 */
const again = `raise exception 'the pending jobs of this key have changed' using errcode = 'VT003',
          detail = coalesce((select string_agg(u.id::text, ' ') from unnest(v_ids, v_states, v_firsts) u(id, state, first_ord)
            where u.state = 'r' and u.first_ord is null), ''),
          hint = 'Read the candidates again and decide again.';`;

/** The lock space is shared with the user's application, so the class comes from schema and prefix. */
function lockClass(n: Names): string {
  return `pg_catalog.hashtext(${n.literal(`venturi:${n.schema}.${n.prefix}`)})`;
}

function conflict(id: string): string {
  return `raise exception 'job id % belongs to a job of another kind or key', ${id}
        using errcode = 'VT001', detail = ${id}::text, hint = 'Repeat an id only with the job it was first given to.';`;
}
