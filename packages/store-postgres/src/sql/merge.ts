import { mergeCandidatesCall } from "@venturi/core";
import type { Names } from "../names.ts";
import { type Statement, statement } from "./statement.ts";

/**
 * The pending jobs of some keys with all that a merge function sees, through the function that every producer calls;
 * see `migrations/0001-initial/merge-candidates.ts`; how a decision is applied is in `enqueue-merge.ts` beside it.
 * Index: `queue_dedup_idx (kind_id, dedup_key, seq)`. Parameters: 1 JSON array of
 * `{ kind, dedup_key, limit?, wait?, ids? }`.
 */
export function findCandidates(n: Names): Statement {
  return statement("find_candidates", mergeCandidatesCall(n.of("merge_candidates_v1")));
}
