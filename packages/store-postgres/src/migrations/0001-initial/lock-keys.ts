import type { Names } from "../../names.ts";

/** How long an enqueue waits for somebody's transaction, where the session itself sets no limit. */
export const longestWait = "30s";

/** What is said to whoever has waited that long. */
export const endItSoon =
  "End that transaction soon after it has enqueued, and never wait inside of it for an enqueue outside of it.";

/**
 * `lock_keys_v1`: locks buckets of keys until the end of the transaction, each once and in ascending order, so that
 * whoever wants several waits in the same order as everybody.
 *
 * Whoever holds one is a transaction that has enqueued a job with such a key and is still open. It may wait for this
 * very call, which no deadlock detector can see, so the wait has an end: 30 seconds, or the session's `lock_timeout`.
 */
export function lockKeys(n: Names): string[] {
  return [
    `create function ${n.of("lock_keys_v1")}(class integer, buckets integer[], longest text default '${longestWait}') returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as ${n.body}
declare
  v_own text := current_setting('lock_timeout');
begin
  if v_own = '0' then perform set_config('lock_timeout', longest, true); end if;
  perform pg_advisory_xact_lock(class, s.bucket)
    from (select distinct u.bucket from unnest(buckets) u(bucket) where u.bucket is not null order by 1) s;
  if v_own = '0' then perform set_config('lock_timeout', v_own, true); end if;
exception when lock_not_available then
  raise exception 'another transaction has enqueued a job with this key, or with one that shares its lock, and is still open'
    using errcode = '55P03', hint = '${endItSoon}';
end
${n.body}`,
  ];
}

/** The lock space is shared with the user's application, so the class comes from schema and prefix. */
export function lockClass(n: Names): string {
  return `pg_catalog.hashtext(${n.literal(`venturi:${n.schema}.${n.prefix}`)})`;
}
