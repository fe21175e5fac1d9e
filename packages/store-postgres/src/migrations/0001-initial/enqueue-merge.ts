import type { Names } from "../../names.ts";

/**
 * Part of `enqueue_v1`, under the locks of the keys: jobs that meet a pending job of their key, or each other, one by
 * one: key by key, and those of a key in their order. Each is merged as its constant or its decision says, or stored
 * where there is nobody to merge with. Whoever has stored a job of a key, of the set before as well, has changed the row
 * of its lock in `keys`: see there.
 *
 * A candidate is the first of its key, or the one that was decided about; locked, so that no claim slips in between the
 * decision and what it writes. What becomes of it is reckoned out in `v_candidate`, and written once: a row that one
 * transaction changes again and again leaves all its versions behind, and each next change would walk past them. A time
 * that was decided and has passed means now, unless the job has been due for longer already.
 */
export function mergeEach(n: Names): string {
  return `  if v_buckets is not null then
    update ${n.of("keys")} k set n = k.n + 1
      where k.bucket = any (array(select u.bucket from unnest(v_states, v_buckets) u(state, bucket) where u.bucket is not null and u.state = 'i'));
    for v_each in
      select * from unnest(v_states, v_ids, v_kind_ids, v_keys, v_merges, v_decisions, v_decided_ats, v_ats, v_seqs, v_priorities, v_leases, v_payloads, v_headers, v_buckets)
        with ordinality u(state, id, kind_id, key, merge, decision, decided_at, at, seq, priority, lease_ms, payload, headers, bucket, ord)
      where u.state = 'd' order by u.kind_id, u.key collate "C", u.ord
    loop
      v_decision := v_each.decision;
      v_action := coalesce(v_decision ->> 'action', v_each.merge);
      v_found := false;
      if v_action = 'insert' then
        -- Decided by a producer that found nobody to merge with: is that still so?
        if exists (select 1 from ${n.of("queue")} q where q.kind_id = v_each.kind_id and q.dedup_key = v_each.key and q.claimed_by is null
            and not coalesce(v_decision -> 'skipped', '[]') ? q.job_id::text) then ${again} end if;
      elsif v_action <> 'independent' then
        if v_held then
          v_held := v_candidate.kind_id = v_each.kind_id and v_candidate.dedup_key = v_each.key
            and case when v_decision is null then v_is_first else v_candidate.job_id = (v_decision ->> 'candidate')::uuid end;
        end if;
        if v_held then
          v_found := v_decision is null or (v_candidate.version = (v_decision ->> 'version')::integer
            and v_candidate.run_count = (v_decision ->> 'run_count')::integer);
        else
          ${write(n)}
          select q.* into v_candidate
            from ${n.of("queue")} q
            where q.kind_id = v_each.kind_id and q.dedup_key = v_each.key and q.claimed_by is null
              and (v_decision is null or (q.job_id = (v_decision ->> 'candidate')::uuid
                and q.version = (v_decision ->> 'version')::integer and q.run_count = (v_decision ->> 'run_count')::integer))
            order by q.seq limit 1 for update;
          v_found := found; v_held := found; v_is_first := v_decision is null;
        end if;
        if not v_found and v_decision is not null then ${again} end if;
      end if;
      if not v_found then
        insert into ${n.of("jobs")} (id, created_at, kind_id, priority, dedup_key, payload, headers)
          values (v_each.id, v_clock, v_each.kind_id, v_each.priority, v_each.key, v_each.payload, v_each.headers);
        update ${n.of("keys")} k set n = k.n + 1 where k.bucket = v_each.bucket;
        insert into ${n.of("queue")} (job_id, seq, visible_at, scheduled, kind_id, priority, dedup_key, lease_ms)
          values (v_each.id, v_each.seq, v_each.at, v_each.at > v_clock, v_each.kind_id, v_each.priority, v_each.key, v_each.lease_ms);
        v_soonest := least(v_soonest, v_each.at);
      else
        v_results[v_each.ord] := v_candidate.job_id;
        v_outcomes[v_each.ord] := case v_action when 'keep' then 'kept' when 'replace' then 'replaced' else 'merged' end;
        insert into ${n.of("journal")} (recorded_at, job_id, kind_id, run_no, failure_count, outcome, note, incoming_id)
          values (v_clock, v_candidate.job_id, v_each.kind_id, v_candidate.run_count, v_candidate.failure_count, 'm', v_action, v_each.id);
        if v_action <> 'keep' then
          v_at := case when v_action = 'replace' then least(v_candidate.visible_at, v_each.at)
            when v_each.decided_at is null then v_candidate.visible_at
            else least(greatest(v_each.decided_at, least(v_candidate.visible_at, v_clock)), v_far) end;
          v_tier := case when v_action = 'replace' then v_each.priority else
            coalesce(case v_decision ->> 'priority' when 'high' then 0 when 'normal' then 1 when 'low' then 2 end, v_candidate.priority) end;
          if v_at < v_candidate.visible_at or v_tier < v_candidate.priority then v_soonest := least(v_soonest, v_at); end if;
          -- It arrives now if this made it due; otherwise it keeps its place.
          if v_candidate.scheduled and v_at <= v_clock then v_candidate.seq := v_each.seq; v_is_first := false; end if;
          v_candidate.scheduled := (v_candidate.scheduled or v_at > v_candidate.visible_at) and v_at > v_clock;
          v_candidate.visible_at := v_at; v_candidate.priority := v_tier;
          v_candidate.version := v_candidate.version % 2147483647 + 1;
          v_candidate.carry := case when v_action = 'replace' then null when v_decision ? 'carry' then v_decision -> 'carry' else v_candidate.carry end;
          v_payload := case when v_action = 'replace' then v_each.payload else v_decision -> 'payload' end;
          v_last := v_each; v_changes := v_changes + 1;
        end if;
      end if;
    end loop;
    ${write(n)}
  end if;
`;
}

/** Writes what has become of the candidate, where it has changed. */
function write(n: Names): string {
  return `if v_changes > 0 then
      update ${n.of("jobs")} b set headers = v_last.headers, priority = v_candidate.priority, payload = v_payload,
          version = (coalesce(b.version, 0)::bigint - 1 + v_changes) % 2147483647 + 1
        where b.id = v_candidate.job_id;
      update ${n.of("queue")} q set priority = v_candidate.priority, lease_ms = v_last.lease_ms, version = v_candidate.version,
          visible_at = v_candidate.visible_at, carry = v_candidate.carry, scheduled = v_candidate.scheduled, seq = v_candidate.seq
        where q.job_id = v_candidate.job_id;
      v_changes := 0;
    end if;`;
}

/**
 * The queue has changed since the producer looked: nothing is written, and the choice starts over. The detail names
 * the jobs that earlier calls have stored, so that it counts on nothing becoming of them.
 */
const again = `raise exception 'the pending jobs of this key have changed' using errcode = 'VT003',
          detail = coalesce((select string_agg(u.id::text, ' ') from unnest(v_ids, v_states, v_firsts) u(id, state, first_ord)
            where u.state = 'r' and u.first_ord is null), ''),
          hint = 'Read the candidates again and decide again.';`;
