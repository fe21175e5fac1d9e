import type { Names } from "../names.ts";
import {
  heldAndPutBack,
  isLeaseOf,
  lookedUp,
  notify,
  oldPlace,
  rows,
  type Statement,
  statement,
} from "./statement.ts";

/**
 * Undoes claims whose handler never started, as if they had never been made: no journal entry, run count as before,
 * their old place in the order.
 *
 * A hand-back that nobody answered is made again, and the first may yet be carried out, when the same worker has
 * claimed the job anew under the same run count. The end of the lease tells the two claims apart: it is not moved
 * before a handler starts.
 *
 * Index: `queue_pkey (job_id)`. Parameters: 1 worker · arrays: 2 job ids · 3 run counts · 4 ends of leases (epoch ms)
 * or null.
 * Returns the positions (from 1) that were applied, and the places to which jobs have come back.
 */
export function handBack(n: Names): Statement {
  return statement(
    "hand_back",
    `with held as materialized (
  select u.ord, q.job_id from ${rows("$2::uuid[]", "$3::int4[]", "$4::float8[]")} with ordinality u(job_id, run_no, lease_ends_ms, ord)
  cross join lateral (
    select q.job_id from ${n.of("queue")} q where q.job_id = u.job_id and q.claimed_by = $1::int4 and q.run_count = u.run_no
      and ${isLeaseOf("u", "q")}
    for update skip locked) q
), pended as (
  update ${n.of("queue")} q set claimed_by = null, claimed_at = null, lease_expires_at = null, backstop = null, run_count = q.run_count - 1
  from held h where ${lookedUp("q.job_id", "h.job_id")}
  returning q.job_id, q.kind_id, q.priority, q.seq
)
select h.ord::int4 as ord, ${notify(n, "true")} as notified, ${oldPlace}
from ${heldAndPutBack}`,
  );
}
