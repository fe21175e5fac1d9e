import {
  type EnqueuedJob,
  type EnqueueOutcome,
  type EnqueueRequest,
  encodeEnqueue,
  fromUuid,
  PORT_VERSION,
  type ProducerStore,
  type StoreCapabilities,
} from "@venturi/core";
import type { Row } from "./database.ts";
import type { Statement } from "./sql/statement.ts";

/** Runs the enqueue statement and maps what its driver throws. */
export type RunEnqueue = (
  statement: Statement,
  values: readonly unknown[],
  request: EnqueueRequest,
) => Promise<readonly Row[]>;

/** The producing half of the store, over the store's own connections or a caller's transaction. */
export function createProducer(
  statement: Statement,
  capabilities: StoreCapabilities,
  run: RunEnqueue,
): ProducerStore {
  return {
    portVersion: PORT_VERSION,
    capabilities,
    async enqueue(request) {
      request.signal?.throwIfAborted();
      if (request.jobs.length === 0) return { jobs: [] };
      const rows = await run(statement, [encodeEnqueue(request.jobs)], request);
      const jobs = new Array<EnqueuedJob>(rows.length);
      for (const row of rows) {
        jobs[(row["ord"] as number) - 1] = {
          id: fromUuid(row["id"] as string),
          outcome: row["outcome"] as EnqueueOutcome,
        };
      }
      return { jobs };
    },
  };
}
