import { toUuid } from "./job-id.ts";
import type { MergeChoice } from "./merge-plan.ts";
import type { EnqueueJob } from "./store.ts";

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
