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
import type { Abortable } from "./abort.ts";
import type { SqlConnection } from "./database.ts";
import type { Statements } from "./statements.ts";

export interface ProducerOptions {
  readonly statements: Statements;
  readonly capabilities: StoreCapabilities;
  readonly prefix: string;
  /** The store's own connections or a caller's transaction; what the driver throws comes out as it is. */
  readonly connection: SqlConnection;
  readonly abortable: Abortable;
}

/** The producing half of the store. */
export function createProducer(options: ProducerOptions): ProducerStore {
  const { statements, capabilities, prefix, connection, abortable } = options;
  return {
    portVersion: PORT_VERSION,
    capabilities,
    async enqueue({ jobs: requested, signal }) {
      signal?.throwIfAborted();
      if (requested.length === 0) return { jobs: [] };
      try {
        const values = [encodeEnqueue(requested)];
        const rows = await abortable(() => connection.run(statements.enqueue, values), signal);
        return { jobs: decodeEnqueued(rows, requested) };
      } catch (error) {
        signal?.throwIfAborted();
        throw isVenturiError(error) ? error : toEnqueueError(error, { jobs: requested, prefix });
      }
    },
    async findCandidates({ keys, wait, signal }) {
      signal?.throwIfAborted();
      if (keys.length === 0) return { candidates: [] };
      try {
        const values = [encodeMergeKeys(keys, wait)];
        const rows = await abortable(
          () => connection.run(statements.findCandidates, values),
          signal,
        );
        return decodeMergeCandidates(keys, rows);
      } catch (error) {
        signal?.throwIfAborted();
        throw toDatabaseError(error, { doing: "read what may be merged with", prefix });
      }
    },
  };
}
