import {
  type FindCandidatesRequest,
  type JobId,
  type MergeCandidate,
  priorityOfTier,
} from "@venturi/core";
import { toJournalEntry } from "./records.ts";
import type { Tables } from "./tables.ts";

/** How many of a candidate's latest journal entries are returned: as many as a merge function sees. */
const journalLimit = 100;

/** Whether an earlier call has stored a job with this id, or merged it into another. */
export function isKnown(tables: Tables, id: JobId): boolean {
  return tables.bodies.has(id) || tables.incoming.has(id);
}

/** The pending jobs of a kind and key, in order of arrival, with all that a merge function sees. */
export function findCandidates(
  tables: Tables,
  { kind, dedupKey, limit }: FindCandidatesRequest["keys"][number],
): readonly MergeCandidate[] {
  const pending = tables.pendingOf(kind, dedupKey);
  return pending.slice(0, limit ?? pending.length).map((job) => ({
    id: job.id,
    version: job.version,
    runCount: job.runCount,
    failureCount: job.failureCount,
    priority: priorityOfTier(job.tier),
    visibleAt: new Date(job.visibleAt),
    payload: tables.bodies.get(job.id)?.payload ?? "null",
    carry: job.carry,
    journal: (tables.journals.get(job.id) ?? [])
      .slice(-journalLimit)
      .map((entry) => toJournalEntry(tables, entry)),
  }));
}
