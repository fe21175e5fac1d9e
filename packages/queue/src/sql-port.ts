import {
  decodeEnqueued,
  decodeMergeCandidates,
  type EnqueueJob,
  encodeEnqueue,
  encodeMergeKeys,
  enqueueCall,
  type Logger,
  mergeCandidatesCall,
  type Names,
  qualifiedName,
  shortHash,
  toDatabaseError,
  toEnqueueError,
  VenturiError,
} from "@venturi/core";
import type { MergingPort } from "./merging.ts";
import type { Runner } from "./sql-executor.ts";

/** Calls the SQL functions that the migrations installed: the lean producer's whole SQL. */
export function sqlPort(runner: Runner, names: Names, logger: Logger): MergingPort {
  const { prefix } = names;
  const enqueue = {
    name: statementName(names, "enqueue_v1"),
    text: enqueueCall(qualifiedName(names, "enqueue_v1")),
  };
  const candidates = {
    name: statementName(names, "merge_v1"),
    text: mergeCandidatesCall(qualifiedName(names, "merge_candidates_v1")),
  };
  return {
    logger,
    async enqueue(jobs) {
      const params = [encode(jobs)];
      try {
        return decodeEnqueued(toRows(await runner.run({ ...enqueue, params })), jobs);
      } catch (error) {
        throw toEnqueueError(error, { jobs, prefix });
      }
    },
    async findCandidates(keys, wait) {
      const params = [encodeMergeKeys(keys, wait)];
      try {
        return decodeMergeCandidates(keys, toRows(await runner.run({ ...candidates, params })));
      } catch (error) {
        throw toDatabaseError(error, { doing: "read what may be merged with", prefix });
      }
    },
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

/** An executor of somebody's own may answer with anything. */
function toRows(rows: unknown): readonly unknown[] {
  return Array.isArray(rows) ? rows : [];
}

/** Names are per connection, which queues of other schemas may share, and at most 63 characters long. */
function statementName({ prefix, schema }: Names, verb: string): string {
  return `${prefix}_${verb}_${shortHash(schema)}`;
}
