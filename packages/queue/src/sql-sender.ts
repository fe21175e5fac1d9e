import {
  type EnqueuedJob,
  type EnqueueJob,
  type EnqueueOutcome,
  encodeEnqueue,
  fromUuid,
  type Names,
  qualifiedName,
  toEnqueueError,
  VenturiError,
} from "@venturi/core";
import type { Send } from "./enqueue-lane.ts";
import type { Runner } from "./sql-executor.ts";

/** Stores jobs by calling the SQL function that the migrations installed: the lean producer's whole SQL. */
export function sqlSender(runner: Runner, names: Names): Send {
  const statement = {
    name: statementName(names),
    text: `select ord, id, outcome from ${qualifiedName(names, "enqueue_v1")}($1::text::jsonb)`,
  };
  return async (jobs) => {
    const params = [encode(jobs)];
    try {
      return readRows(await runner.run({ ...statement, params }), jobs.length);
    } catch (error) {
      throw toEnqueueError(error, { jobs, prefix: names.prefix });
    }
  };
}

function encode(jobs: readonly EnqueueJob[]): string {
  try {
    return encodeEnqueue(jobs);
  } catch (error) {
    // The one thing that can go wrong with validated jobs: text longer than JavaScript's longest string.
    throw new VenturiError(
      "serialization",
      `could not encode ${jobs.length} jobs as one statement; enqueue them in several calls`,
      { cause: error },
    );
  }
}

function readRows(rows: unknown, count: number): readonly EnqueuedJob[] {
  if (!Array.isArray(rows) || rows.length !== count) {
    throw new VenturiError(
      "database",
      `the enqueue function answered with ${Array.isArray(rows) ? rows.length : "no"} rows for ${count} jobs; pass what runs { query(text, params) } and returns its { rows }`,
    );
  }
  const jobs = new Array<EnqueuedJob>(count);
  for (const row of rows as readonly Readonly<Record<string, unknown>>[]) {
    // A type parser of the user's own may have made something else of the number.
    const index = Number(row["ord"]) - 1;
    jobs[index] = { id: fromUuid(String(row["id"])), outcome: row["outcome"] as EnqueueOutcome };
  }
  return jobs;
}

/** Names are per connection, which queues of other schemas may share, and at most 63 characters long. */
function statementName({ prefix, schema }: Names): string {
  let hash = 0x811c9dc5;
  for (const unit of schema) hash = Math.imul(hash ^ (unit.codePointAt(0) as number), 0x01000193);
  return `${prefix}_enqueue_v1_${(hash >>> 0).toString(16).padStart(8, "0")}`;
}
