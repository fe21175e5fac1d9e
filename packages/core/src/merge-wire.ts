import { dateOf } from "./duration.ts";
import { fromUuid, type JobId, toUuid } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import type { MergeCandidate } from "./pending-row.ts";
import { priorityOfTier } from "./priority.ts";
import type { FindCandidatesRequest, FindCandidatesResult } from "./store.ts";
import { column } from "./wire-column.ts";

type Key = FindCandidatesRequest["keys"][number];

/** The JSON array that the SQL function `{prefix}_merge_candidates_v1` takes. */
export function encodeMergeKeys(keys: readonly Key[], wait = false): string {
  return JSON.stringify(
    keys.map(({ kind, dedupKey, limit, ids }) => ({
      kind,
      dedup_key: dedupKey,
      limit,
      ids: ids?.map(toUuid),
      wait: wait || undefined,
    })),
  );
}

/**
 * The statement that calls `{prefix}_merge_candidates_v1`, given its qualified name, with what {@link encodeMergeKeys}
 * made as parameter 1.
 */
export function mergeCandidatesCall(functionName: string): string {
  return `select ord, candidate, known from ${functionName}($1::pg_catalog.text::pg_catalog.jsonb)`;
}

/** A candidate as the function writes it. */
interface WireCandidate {
  readonly id: string;
  readonly version: number;
  readonly run_count: number;
  readonly failure_count: number;
  readonly priority: number;
  readonly visible_ms: number;
  readonly payload: unknown;
  /** As text: a carry of null is not the initial one. */
  readonly carry: string | null;
  readonly journal: readonly WireEntry[];
}

interface WireEntry {
  readonly run_no: number;
  readonly outcome: JournalEntry["outcome"];
  readonly note: string | null;
  readonly attachment: unknown;
  readonly detail: JournalEntry["detail"];
  readonly worker: string | null;
  readonly started_ms: number | null;
  readonly recorded_ms: number;
}

/** The rows of {@link mergeCandidatesCall}, `ord` from 1, each with a `candidate` as JSON text or an id that is `known`. */
export function decodeMergeCandidates(
  keys: readonly Key[],
  rows: readonly unknown[],
): Required<FindCandidatesResult> {
  const candidates = keys.map((): MergeCandidate[] => []);
  const known: JobId[] = [];
  for (const row of rows) {
    const id = column(row, "known", 2);
    if (typeof id === "string") {
      known.push(fromUuid(id));
      continue;
    }
    const index = Number(column(row, "ord", 0)) - 1;
    const key = keys[index];
    const candidate = String(column(row, "candidate", 1));
    if (key !== undefined) candidates[index]?.push(toCandidate(JSON.parse(candidate), key.kind));
  }
  return { candidates, known };
}

function toCandidate(wire: WireCandidate, kind: string): MergeCandidate {
  const id = fromUuid(wire.id);
  return {
    id,
    version: wire.version,
    runCount: wire.run_count,
    failureCount: wire.failure_count,
    priority: priorityOfTier(wire.priority),
    visibleAt: dateOf(Number(wire.visible_ms)),
    payload: JSON.stringify(wire.payload),
    carry: wire.carry,
    journal: wire.journal.map((entry) => ({
      jobId: id,
      kind,
      runNo: entry.run_no,
      outcome: entry.outcome,
      note: entry.note,
      attachment: entry.attachment,
      detail: entry.detail,
      worker: entry.worker,
      startedAt: entry.started_ms === null ? null : dateOf(Number(entry.started_ms)),
      recordedAt: dateOf(Number(entry.recorded_ms)),
    })),
  };
}
