import type { Names } from "../../names.ts";

/**
 * `bodies_v1`: the bodies of the jobs that a claim has taken, all of them in one walk through the index, which reads
 * each of its pages once where their ids lie together, as those of jobs that came together do.
 *
 * A function and not a part of the claim, since only a function can rule out the sequential scan that a kept plan
 * would choose while the table is small, and would stay with when it has grown.
 * Index: `jobs_pkey (id)`.
 */
export function bodies(n: Names): string[] {
  return [
    `create function ${n.of("bodies_v1")}(ids uuid[]) returns table (id uuid, payload text, headers text, version integer)
language plpgsql stable rows 10 set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as ${n.body}
#variable_conflict use_column
begin
  return query select j.id, j.payload::text, j.headers::text, coalesce(j.version, 0) from ${n.of("jobs")} j where j.id = any (ids);
end
${n.body}`,
  ];
}
