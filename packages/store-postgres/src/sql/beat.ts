import { COUNTED_SILENCE_MS } from "@venturi/core";
import type { Names } from "../names.ts";
import {
  bounded,
  epochMs,
  msSince,
  msUntil,
  type Statement,
  silentAt,
  statement,
} from "./statement.ts";

/**
 * Publishes that a worker lives, restoring its row if it was removed or given up, and returns who has gone silent.
 * Each worker is judged by the timeout and shortest lease in its own row. The table is tiny.
 *
 * Parameters: 1 id · 2 name · 3 kinds · 4 poll max ms · 5 worker timeout ms · 6 shortest lease ms · 7 code version.
 */
export function beat(n: Names): Statement {
  // To be suspect costs a look for overdue claims. So is whoever says what no worker says.
  const lease = "case when w.shortest_lease_ms <= 1e15 then w.shortest_lease_ms else 0 end";
  const suspectAt = silentAt(n, `least(w.worker_timeout_ms, ${lease})`);
  const deadAt = silentAt(n);
  const countedUntil = silentAt(n, `least(w.worker_timeout_ms, ${COUNTED_SILENCE_MS})`);
  return statement(
    "beat",
    `with me as (
  insert into ${n.of("workers")} as w (id, name, started_at, beat_at, kinds, poll_max_ms, worker_timeout_ms, shortest_lease_ms, code_version)
  values ($1::int4, $2::text, ${n.of("clock")}(), ${n.of("clock")}(), $3::text[], $4::float8, $5::float8, $6::float8, $7::int4)
  on conflict (id) do update set beat_at = excluded.beat_at, stopping_at = null, shortest_lease_ms = excluded.shortest_lease_ms
), others as materialized (
  select w.id, w.name, ${msSince(n, bounded("w.beat_at"))} as silent_ms, least(greatest(w.worker_timeout_ms, 0), 3e14) as timeout_ms, ${deadAt} <= ${n.of("clock")}() as dead, (${suspectAt} <= ${n.of("clock")}() or w.beat_at > ${n.of("clock")}() + interval '1 hour') as suspect,
    ${countedUntil} > ${n.of("clock")}() as counted, case when ${suspectAt} > ${n.of("clock")}() then ${suspectAt} when ${deadAt} > ${n.of("clock")}() then ${deadAt} end as next_at
  from ${n.of("workers")} w where w.stopping_at is null and w.id <> $1::int4
)
select (extract(epoch from statement_timestamp() - pg_postmaster_start_time()) * 1000)::float8 as server_up_ms,
  ${msUntil(n, "(select min(next_at) from others)")} as next_suspect_ms,
  (select count(*)::int4 from others where counted) as others,
  ${epochMs(`${n.of("clock")}()`)} as clock_ms,
  s.id, s.name, s.silent_ms, s.timeout_ms, s.dead::int4 as dead
from (select 1) one left join others s on s.suspect or s.dead
order by s.silent_ms desc`,
  );
}

/** Opens a worker session. Parameters: 1 name · 2 kinds · 3 poll max ms · 4 worker timeout ms · 5 shortest lease ms · 6 code version. */
export function startWorker(n: Names): Statement {
  return statement(
    "start_worker",
    `insert into ${n.of("workers")} (name, started_at, beat_at, kinds, poll_max_ms, worker_timeout_ms, shortest_lease_ms, code_version)
  values ($1::text, ${n.of("clock")}(), ${n.of("clock")}(), $2::text[], $3::float8, $4::float8, $5::float8, $6::int4) returning id`,
  );
}

/** Ends a worker session cleanly. Parameters: 1 id. */
export function stopWorker(n: Names): Statement {
  return statement(
    "stop_worker",
    `update ${n.of("workers")} set stopping_at = ${n.of("clock")}() where id = $1::int4`,
  );
}
