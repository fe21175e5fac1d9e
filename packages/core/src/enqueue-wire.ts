import { fromUuid, toUuid } from "./job-id.ts";
import type { MergeChoice } from "./merge-plan.ts";
import type { EnqueuedJob, EnqueueJob, EnqueueOutcome } from "./store.ts";
import { column } from "./wire-column.ts";

/**
 * The JSON array that the SQL function `{prefix}_enqueue_v1` takes, shared by the lean producer and the PostgreSQL
 * store. Built by hand because the payload is JSON text already: it is spliced in, not parsed and written again.
 */
export function encodeEnqueue(jobs: readonly EnqueueJob[]): string {
  let text = "[";
  for (const job of jobs) {
    if (text.length > 1) text += ",";
    text += `{"id":"${toUuid(job.id)}","kind":${JSON.stringify(job.kind)},"payload":${job.payload}`;
    if (job.priority !== "normal") text += `,"priority":"${job.priority}"`;
    if (job.dedupKey !== undefined && job.dedupKey !== null) {
      text += `,"dedup_key":${JSON.stringify(job.dedupKey)},"merge":"${job.merge ?? "replace"}"`;
    }
    if (job.delayMs !== undefined) text += `,"delay_ms":${job.delayMs}`;
    if (job.runAt !== undefined) text += `,"run_at":"${isoTime(job.runAt)}"`;
    if (job.leaseMs !== undefined && job.leaseMs !== null) text += `,"lease_ms":${job.leaseMs}`;
    if (job.headers !== undefined && job.headers !== null)
      text += `,"headers":${JSON.stringify(job.headers)}`;
    if (job.decision !== undefined) text += `,"decision":${encodeChoice(job.decision)}`;
    text += "}";
  }
  return `${text}]`;
}

/** The rows of the function, `ord` from 1, in the order of their jobs. */
export function decodeEnqueued(rows: readonly unknown[]): EnqueuedJob[] {
  const jobs = new Array<EnqueuedJob>(rows.length);
  for (const row of rows) {
    // A type parser of the user's own may have made something else of the number.
    const index = Number(column(row, "ord", 0)) - 1;
    const id = fromUuid(String(column(row, "id", 1)));
    jobs[index] = { id, outcome: column(row, "outcome", 2) as EnqueueOutcome };
  }
  return jobs;
}

/** A decision as the function takes it: ids as uuids, payload and carry spliced in. */
function encodeChoice(choice: MergeChoice): string {
  if (choice.action === "independent") return '{"action":"independent"}';
  if (choice.action === "insert") {
    return `{"action":"insert","skipped":${JSON.stringify(choice.skipped.map(toUuid))}}`;
  }
  let text = `{"action":"${choice.action}","candidate":"${toUuid(choice.candidate)}"`;
  text += `,"version":${choice.version},"run_count":${choice.runCount}`;
  if (choice.action === "with") {
    text += `,"payload":${choice.payload}`;
    if (choice.carry !== undefined) text += `,"carry":${choice.carry}`;
    if (choice.visibleAt !== undefined) text += `,"visible_at":"${isoTime(choice.visibleAt)}"`;
    if (choice.priority !== undefined) text += `,"priority":"${choice.priority}"`;
  }
  return `${text}}`;
}

function isoTime(epochMs: number): string {
  return new Date(Math.max(0, epochMs)).toISOString();
}
