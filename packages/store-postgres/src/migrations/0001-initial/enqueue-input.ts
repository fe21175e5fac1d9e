import type { Names } from "../../names.ts";

/** The id of a job that came without one: a ULID of the database's clock. */
export const newId = `(lpad(to_hex((extract(epoch from v_clock) * 1000)::bigint), 12, '0')
          || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid`;

/** A priority's number, null for what is none. */
export const tierOf = (priority: string): string =>
  `case coalesce(${priority}, 'normal') when 'high' then 0 when 'normal' then 1 when 'low' then 2 end::smallint`;

/** When a job is due: what has passed means now. */
export const dueOf = (runAt: string, delayMs: string): string =>
  `case when ${runAt} is not null then greatest(${runAt}, v_clock)
          when ${delayMs} > 0 then v_clock + make_interval(secs => least(${delayMs}, 3e14) / 1000)
          else v_clock end`;

/** A lease as it is stored: what no interval holds is cut. */
export const leaseOf = (leaseMs: string): string =>
  `case when ${leaseMs} > 3e14 then 3e14 else ${leaseMs} end`;

/** Headers, an object, that are refused; a null counts as left out. */
export const refusesHeaders = (headers: string): string =>
  `jsonb_path_exists(${headers}, 'strict $.* ? (@.type() != "string" && @.type() != "null")')`;

/** The members of a job, and their types. */
const columns = `(id uuid, kind text, payload jsonb, priority text, dedup_key text,
      merge text, delay_ms double precision, run_at timestamptz, lease_ms double precision, headers jsonb, decision jsonb)`;

/** Compared as texts with ids as the database writes them: written otherwise, one would be passed over in vain. */
const refusesSkipped = (skipped: string): string =>
  `jsonb_typeof(${skipped}) not in ('array', 'null') or jsonb_typeof(${skipped}) = 'array' and jsonb_path_exists(${skipped},
            '$[*] ? (@.type() != "string" || !(@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))')`;

/**
 * Part of `enqueue_v1`: reads the jobs into arrays, a member each, in their order. Raises VT002 for the first that is
 * refused; ends the call where there is none. A kind that is new has no number yet.
 */
export function readJobs(n: Names): string {
  return `  begin
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
`;
}
