import { noHint } from "../../hint.ts";
import type { Names } from "../../names.ts";
import { dueOf, leaseOf, newId, refusesHeaders, tierOf } from "./enqueue-input.ts";

/** Rows of kinds may have been written by hand, under names that no job can have. */
const isNamed = "length(k.name) between 1 and 200";

/** What a job may say beside its id, kind and payload. */
const options = "{priority,dedup_key,merge,delay_ms,run_at,lease_ms,headers,decision}";

/**
 * The very start of `enqueue_v1`: one new job that says nothing but its id, its kind and its payload, as most calls of
 * those that enqueue one by one. Two statements instead of seven, each of which has to be started, on caches that are
 * cold where enqueues are rare. All else is left to what follows, an id that is malformed or known and a kind that is
 * new as well.
 *
 * Its notification names the job, but only if the transaction has written nothing before: of many calls in one
 * transaction most notify alike then, which counts as once.
 */
export function singlePath(n: Names): string {
  const id = "(v_job ->> 'id')::uuid";
  return `  v_job := jobs -> 0;
  if jobs -> 1 is null and v_job ->> 'id' ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' and not v_job ?| '${options}' then
    v_hint := case when pg_current_xact_id_if_assigned() is null then v_job ->> 'id' else '${noHint}' end;
    with body as (
      insert into ${n.of("jobs")} (id, created_at, kind_id, priority, payload)
      select ${id}, v_clock, k.id, 1, coalesce(v_job -> 'payload', 'null')
      from ${n.of("kinds")} k where k.name = v_job ->> 'kind' and ${isNamed}
        and not exists (select 1 from ${n.of("journal")} e where e.incoming_id = ${id})
        and not exists (select 1 from ${n.of("jobs")} b where b.id = ${id})
      returning id, kind_id
    )
    insert into ${n.of("queue")} (job_id, visible_at, kind_id, priority) select b.id, v_clock, b.kind_id, 1 from body b;
    if found then
      perform pg_notify(${n.literal(n.prefix)}, v_hint) from ${n.of("meta")} m where m.notify;
      ord := 1; id := v_job ->> 'id'; outcome := 'enqueued';
      return next;
      return;
    end if;
  end if;

`;
}

/**
 * What comes next in `enqueue_v1`: stores the jobs if none of them has a key and all of them are new, and says so in
 * `v_plain`. Most calls are of this kind, and need neither locks nor anything decided about single jobs.
 *
 * Whatever else a call holds, bad input too, is left to the rest of the function, which begins anew and knows all
 * that can be wrong: nothing is written here unless all of the call can be.
 *
 * Of 1,000 jobs, looking members up in elements takes half the time of a record of eleven columns, and looking up
 * one kind saves as much again as joining them. So what is the same for all jobs is kept once: `v_kind`, and no
 * arrays of what no job says. An array that is null gives nulls.
 */
export function plainPath(n: Names): string {
  return `  v_plain := not jsonb_path_exists(jobs, '$[*].dedup_key');
  if v_plain then
    v_name := jobs #>> '{0,kind}';
    begin
      select array_agg(x.id), array_agg(x.payload), bool_and(x.kind is not distinct from v_name),
        (select k.id from ${n.of("kinds")} k where k.name = v_name and ${isNamed}), bool_or(x.has_options)
      into v_ids, v_payloads, v_same_kind, v_kind, v_has_options
      from (
        select coalesce((e.job ->> 'id')::uuid, ${newId}) as id, e.job ->> 'kind' as kind, coalesce(e.job -> 'payload', 'null') as payload,
          e.job ?| '{priority,delay_ms,run_at,lease_ms,headers,merge,decision}' as has_options
        from jsonb_array_elements(jobs) e(job)) x;
      if v_has_options then
        select array_agg(x.tier), array_agg(least(x.due, v_far)), min(least(x.due, v_far)), array_agg(${leaseOf("x.lease_ms")}), array_agg(x.headers),
          bool_and(x.tier is not null and coalesce(x.lease_ms >= 0 and x.lease_ms <> 'NaN', true) and coalesce(x.delay_ms <> 'NaN', true)
            and (x.delay_ms is null or x.run_at is null) and coalesce(case when jsonb_typeof(x.headers) <> 'object' then false else not (${refusesHeaders("x.headers")}) end, true)
            and not x.is_merge)
        into v_priorities, v_ats, v_soonest, v_leases, v_headers, v_plain
        from (
          select ${tierOf("m.priority")} as tier, ${dueOf("m.run_at", "m.delay_ms")} as due,
            m.lease_ms, m.headers, m.delay_ms, m.run_at, m.is_merge
          from (
            select e.job ->> 'priority' as priority, (e.job ->> 'delay_ms')::double precision as delay_ms,
              (e.job ->> 'run_at')::timestamptz as run_at, (e.job ->> 'lease_ms')::double precision as lease_ms,
              nullif(e.job -> 'headers', 'null') as headers, e.job ?| '{merge,decision}' as is_merge
            from jsonb_array_elements(jobs) e(job)) m) x;
      else
        v_soonest := v_clock;
      end if;
    exception when data_exception then
      v_plain := false;
    end;
  end if;

  if v_plain and not v_same_kind then
    v_kind_ids := array(select k.id from jsonb_array_elements(jobs) with ordinality e(job, ord)
      left join ${n.of("kinds")} k on k.name = e.job ->> 'kind' and ${isNamed} order by e.ord);
  end if;
  v_plain := v_plain and case when v_same_kind then v_kind is not null else array_position(v_kind_ids, null) is null end
    and not exists (select 1 from ${n.of("journal")} e where e.incoming_id = any (v_ids))
    and not exists (select 1 from ${n.of("jobs")} b where b.id = any (v_ids))
    and (cardinality(v_ids) = 1 or (select count(distinct u.id) from unnest(v_ids) u(id)) = cardinality(v_ids));

  if v_plain then
    -- In the order of the arrays without being told: sorting would be for nothing.
    insert into ${n.of("jobs")} (id, created_at, kind_id, priority, payload, headers)
      select u.id, v_clock, coalesce(u.kind_id, v_kind), coalesce(u.priority, 1::smallint), u.payload, u.headers
      from unnest(v_ids, v_kind_ids, v_priorities, v_payloads, v_headers) u(id, kind_id, priority, payload, headers);
    insert into ${n.of("queue")} (job_id, visible_at, scheduled, kind_id, priority, lease_ms)
      select u.id, coalesce(u.at, v_clock), coalesce(u.at > v_clock, false), coalesce(u.kind_id, v_kind), coalesce(u.priority, 1::smallint), u.lease_ms
      from unnest(v_ids, v_ats, v_kind_ids, v_priorities, v_leases) u(id, at, kind_id, priority, lease_ms);
    v_results := v_ids;
`;
}
