import type { Names } from "../../names.ts";

/**
 * Part of `enqueue_v1`, under the locks of the keys: jobs that meet a pending job of their key, or each other, one by
 * one in their order. Each is merged as its constant or its decision says, or stored where there is nobody to merge
 * with. Whoever has stored a job of a key, of the set before as well, has changed the row of its lock in `keys`: see there.
 */
export function mergeEach(n: Names): string {
  return `  if v_buckets is not null then
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
`;
}

/**
 * The queue has changed since the producer looked: nothing is written, and the choice starts over. The detail names
 * the jobs that earlier calls have stored, so that it counts on nothing becoming of them.
 */
const again = `raise exception 'the pending jobs of this key have changed' using errcode = 'VT003',
          detail = coalesce((select string_agg(u.id::text, ' ') from unnest(v_ids, v_states, v_firsts) u(id, state, first_ord)
            where u.state = 'r' and u.first_ord is null), ''),
          hint = 'Read the candidates again and decide again.';`;
