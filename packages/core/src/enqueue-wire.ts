import { VenturiError } from "./errors.ts";
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
    } else if (job.repeatable === true) {
      // No key, but a call that says so does not take the shorter ways, which set no limit to their waits.
      text += ',"dedup_key":null';
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

/**
 * The statement that calls `{prefix}_enqueue_v1`, given its qualified name, with what {@link encodeEnqueue} made as
 * parameter 1. It answers with one row: nearly always all jobs became what they were sent as, and a row for each of
 * them would be written, sent and read for nothing.
 *
 * Whatever it uses is named with its schema: it is sent in sessions of the application's, whose search path is its own.
 */
export function enqueueCall(functionName: string): string {
  const others =
    "pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(ord, id, outcome)) filter (where outcome operator(pg_catalog.<>) 'enqueued')";
  return `select pg_catalog.count(*)::pg_catalog.int4 as jobs, (${others})::pg_catalog.text as others from ${functionName}($1::pg_catalog.text::pg_catalog.jsonb)`;
}

/**
 * What became of each of `jobs`, in their order, by the row that {@link enqueueCall} answers with. Throws `database`
 * where something between here and the server has lost it.
 */
export function decodeEnqueued(
  rows: readonly unknown[],
  jobs: readonly Pick<EnqueueJob, "id">[],
): EnqueuedJob[] {
  const [row] = rows;
  // A type parser of the user's own may have made something else of the number.
  const count = rows.length === 1 ? Number(column(row, "jobs", 0)) : undefined;
  if (count !== jobs.length) throw lostAnswer(rows.length, count, jobs.length);
  const stored: EnqueuedJob[] = jobs.map(({ id }) => ({ id, outcome: "enqueued" }));
  const others = column(row, "others", 1);
  if (others === null || others === undefined) return stored;
  for (const [ord, id, outcome] of JSON.parse(String(others)) as OtherOutcome[]) {
    stored[ord - 1] = { id: fromUuid(id), outcome };
  }
  return stored;
}

/** `ord` from 1. */
type OtherOutcome = readonly [ord: number, uuid: string, outcome: EnqueueOutcome];

function lostAnswer(rows: number, count: number | undefined, wanted: number): VenturiError {
  const got = count === undefined ? `${rows} rows instead of one` : `${count} jobs`;
  return new VenturiError(
    "database",
    `the enqueue function answered with ${got} for ${wanted} jobs; pass what runs { query(text, params) } and returns its { rows }; the jobs may have been stored`,
  );
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
