import type { Names } from "../names.ts";
import {
  after,
  bounded,
  epochMs,
  lookedUp,
  msUntil,
  rows,
  type Statement,
  statement,
} from "./statement.ts";

/**
 * Moves the ends of leases to the clock plus a span, never nearer, while the claims are held. A row that somebody
 * has locked is passed over. Index: `queue_pkey (job_id)`; the update stays heap-only.
 * Parameters: 1 worker · arrays: 2 job ids · 3 run counts · 4 spans in ms. Returns positions (from 1) and new ends.
 */
export function extendLease(n: Names): Statement {
  return statement(
    "extend_lease",
    `with held as materialized (
  select u.ord, u.span_ms, q.job_id from ${rows("$2::uuid[]", "$3::int4[]", "$4::float8[]")} with ordinality u(job_id, run_no, span_ms, ord)
  cross join lateral (
    select q.job_id from ${n.of("queue")} q where q.job_id = u.job_id and q.claimed_by = $1::int4 and q.run_count = u.run_no
    for update skip locked) q
)
update ${n.of("queue")} q set lease_expires_at = greatest(${bounded("q.lease_expires_at")}, ${after(n, "h.span_ms")})
from held h where ${lookedUp("q.job_id", "h.job_id")}
returning h.ord::int4 as ord, ${epochMs("q.lease_expires_at")} as lease_expires_ms, ${msUntil(n, "q.lease_expires_at")} as lease_ms`,
  );
}
