import {
  decodeEnqueued,
  decodeMergeCandidates,
  encodeEnqueue,
  encodeMergeKeys,
  isVenturiError,
  PORT_VERSION,
  type ProducerStore,
  type StoreCapabilities,
  toDatabaseError,
  toEnqueueError,
} from "@venturi/core";
import type { SqlConnection } from "./database.ts";
import type { Statements } from "./statements.ts";

export interface ProducerOptions {
  readonly statements: Statements;
  readonly capabilities: StoreCapabilities;
  readonly prefix: string;
  /** The store's own connections or a caller's transaction; what the driver throws comes out as it is. */
  readonly connection: SqlConnection;
}

/** The producing half of the store. */
export function createProducer(options: ProducerOptions): ProducerStore {
  const { statements, capabilities, prefix, connection } = options;
  return {
    portVersion: PORT_VERSION,
    capabilities,
    async enqueue({ jobs: requested, signal }) {
      signal?.throwIfAborted();
      if (requested.length === 0) return { jobs: [] };
      try {
        const rows = await connection.run(statements.enqueue, [encodeEnqueue(requested)]);
        return { jobs: decodeEnqueued(rows, requested) };
      } catch (error) {
        throw isVenturiError(error) ? error : toEnqueueError(error, { jobs: requested, prefix });
      }
    },
    async findCandidates({ keys, wait, signal }) {
      signal?.throwIfAborted();
      if (keys.length === 0) return { candidates: [] };
      try {
        const rows = await connection.run(statements.findCandidates, [encodeMergeKeys(keys, wait)]);
        return decodeMergeCandidates(keys, rows);
      } catch (error) {
        throw toDatabaseError(error, { doing: "read what may be merged with", prefix });
      }
    },
  };
}
