import { toUuid } from "./job-id.ts";
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
    if (job.runAt !== undefined)
      text += `,"run_at":"${new Date(Math.max(0, job.runAt)).toISOString()}"`;
    if (job.leaseMs !== undefined && job.leaseMs !== null) text += `,"lease_ms":${job.leaseMs}`;
    if (job.headers !== undefined && job.headers !== null)
      text += `,"headers":${JSON.stringify(job.headers)}`;
    text += "}";
  }
  return `${text}]`;
}
