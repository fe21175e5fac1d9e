import {
  invalidArgument,
  type OperatorStore,
  PORT_VERSION,
  type ProducerStore,
  type Store,
} from "@venturi/core";
import { type Backend, mayBeOneJobs, transactionLane } from "./backend.ts";
import { EnqueueLane, type Send } from "./enqueue-lane.ts";
import { hasMethods } from "./has-methods.ts";
import { type QueueOptions, resolveQueueOptions } from "./options.ts";
import { repeatConflicts } from "./repeat.ts";

/** Enqueues through a store; throws `invalid-argument` for options, which are the store's own. */
export function storeBackend(store: ProducerStore, options: QueueOptions = {}): Backend {
  resolveQueueOptions(options);
  for (const name of ["prefix", "schema", "preparedStatements"] as const) {
    if (options[name] === undefined) continue;
    throw invalidArgument(name, "makes no sense here", "the store has its own");
  }
  const send = sender(store);
  return {
    lane: new EnqueueLane({
      send: (jobs) => repeatConflicts(() => send(jobs)),
      coalesces: () => true,
      isolates: mayBeOneJobs,
    }),
    laneWithin(tx) {
      const { within } = store as Partial<Store<unknown>>;
      if (typeof within === "function") return transactionLane(sender(within.call(store, tx)));
      throw invalidArgument(
        "tx",
        "cannot be used: this store has no transactions",
        "make a queue over the database connection instead",
      );
    },
  };
}

function sender(store: ProducerStore): Send {
  return async (jobs) => (await store.enqueue({ jobs })).jobs;
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
  return hasMethods(store, ["findJob", "queryJobs", "readJournal"]);
}
