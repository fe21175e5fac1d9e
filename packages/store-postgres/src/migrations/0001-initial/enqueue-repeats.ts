import type { Names } from "../../names.ts";

/**
 * Part of `enqueue_v1`: finds the jobs whose ids are known already, from an earlier call or from earlier in this one.
 * They are repeats of what was stored then. Raises VT001 where that is a job of another kind or key.
 */
export function findRepeats(n: Names): string {
  return `  -- An id that was merged away when it first came is known by its journal entry.
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
`;
}

function conflict(id: string): string {
  return `raise exception 'job id % belongs to a job of another kind or key', ${id}
        using errcode = 'VT001', detail = ${id}::text, hint = 'Repeat an id only with the job it was first given to.';`;
}
