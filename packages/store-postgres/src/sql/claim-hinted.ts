import type { Names } from "../names.ts";
import { claimedJob, claimInfo, claimUpdate, isNamed, isReady, ofKind } from "./claim-terms.ts";
import { epochMs, lookedUp, type Statement, statement } from "./statement.ts";

/**
 * Claims the one job that a notification named, where nothing else waits: a lookup by id instead of walks. It answers with
 * one row, without a job if that has been taken meanwhile, is of a kind that is not asked for, or is not due yet. `held`
 * says that the job was seen but locked by somebody: by a merge, or by another claim.
 *
 * Indexes: `queue_pkey (job_id)`, `jobs_pkey (id)`.
 *
 * Parameters: 1 worker · 2 limit · 3 kind ids · 4 room per kind · 5 lease ms per kind · 6 backstop per kind ·
 * 7 job id · 8 name per kind.
 */
export function claimHinted(n: Names): Statement {
  const info = claimInfo(n, {
    clock_ms: epochMs("s.now"),
    held: "s.job_id is not null and c.job_id is null",
  });
  return statement(
    "claim_hinted",
    `with seen as materialized (
  select q.job_id, ${n.of("clock")}() as now from ${n.of("queue")} q
  where q.job_id = $7::uuid and ${ofKind("$4::int4[]")} > 0 and ${isReady("q")}
    and (select ${isNamed("$8", "k")} from ${n.of("kinds")} k where k.id = q.kind_id)
  limit $2::int4
), claimed as (
  ${claimUpdate(
    n,
    `select q.job_id from ${n.of("queue")} q
      where q.job_id = any (array(select s.job_id from seen s)) and ${isReady("q")} for update skip locked`,
  )}
)
select ${info}, ${claimedJob}
from (select 1) one left join seen s on true left join claimed c on true left join lateral (
  select j.payload::text, j.headers::text, coalesce(j.version, 0) as version from ${n.of("jobs")} j
  where ${lookedUp("j.id", "c.job_id")}) b on true`,
  );
}
