import type { Names } from "../../names.ts";
import { lockClass } from "./lock-keys.ts";
import { buckets } from "./tables.ts";

/**
 * `merge_candidates_v1(keys jsonb)`: what a merge function is asked about, before its decision comes back with
 * `enqueue_v1`.
 *
 * Takes an array of `{ kind, dedup_key, limit?, wait?, ids? }` and returns `(ord, candidate, known)`: the pending jobs
 * of each key as JSON text, and of its `ids` those that are known already. Raises VT002 for a key it refuses.
 *
 * Index: `queue_dedup_idx (kind_id, dedup_key, seq)`. For its settings see `enqueue_v1`, whose plans are kept alike.
 */
export function mergeCandidates(n: Names): string[] {
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
  ];
}

/** What is said to whoever passes anything else. */
const readsKeys = "Pass [{ kind, dedup_key, limit?, wait?, ids? }, …].";
