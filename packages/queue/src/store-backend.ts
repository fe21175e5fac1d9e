import {
  invalidArgument,
  type Logger,
  type OperatorStore,
  PORT_VERSION,
  type ProducerStore,
  type Store,
} from "@venturi/core";
import { type Backend, Lanes, mayBeOneJobs, transactionLanes } from "./backend.ts";
import { EnqueueLane } from "./enqueue-lane.ts";
import { hasMethods } from "./has-methods.ts";
import { type MergingPort, mergeAndSend, mergeUntilSent } from "./merging.ts";
import { type QueueOptions, resolveQueueOptions } from "./options.ts";

/** Enqueues through a store; throws `invalid-argument` for options that are the store's own. */
export function storeBackend(store: ProducerStore, options: QueueOptions = {}): Backend {
  const { logger } = resolveQueueOptions(options);
  for (const name of ["prefix", "schema", "preparedStatements"] as const) {
    if (options[name] === undefined) continue;
    throw invalidArgument(name, "makes no sense here", "the store has its own");
  }
  const port = storePort(store, logger);
  const lane = () =>
    new EnqueueLane({
      send: (jobs) => mergeUntilSent(port, jobs),
      coalesces: () => true,
      isolates: mayBeOneJobs,
    });
  return {
    lanes: Lanes.ofPool(lane),
    lanesWithin(tx) {
      const { within } = store as Partial<Store<unknown>>;
      if (typeof within === "function") {
        const txPort = storePort(within.call(store, tx), logger);
        return transactionLanes((jobs) => mergeAndSend(txPort, jobs));
      }
      throw invalidArgument(
        "tx",
        "cannot be used: this store has no transactions",
        "make a queue over the database connection instead",
      );
    },
  };
}

function storePort(store: ProducerStore, logger: Logger): MergingPort {
  return {
    enqueue: async (jobs) => (await store.enqueue({ jobs })).jobs,
    findCandidates: (keys, wait) => store.findCandidates({ keys, wait }),
    logger,
  };
}

export function isProducerStore(value: unknown): value is ProducerStore {
  if (!hasMethods(value, ["enqueue"]) || !("portVersion" in value)) return false;
  if (value.portVersion === PORT_VERSION) return true;
  throw invalidArgument(
    "store",
    `speaks version ${String(value.portVersion)} of the store ports, not ${PORT_VERSION}`,
    "install the same version of every venturi package",
  );
}

export function isOperatorStore(store: ProducerStore): store is ProducerStore & OperatorStore {
  return hasMethods(store, [
    "findJob",
    "queryJobs",
    "readJournal",
    "stats",
    "cleanup",
    "retry",
    "cancel",
  ]);
}
