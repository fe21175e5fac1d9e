import {
  type JobId,
  type Logger,
  type Notifier,
  readDatabaseFault,
  type Subscription,
  type WorkerStore,
} from "@venturi/core";

/** A connection that notifies is asked for a sign of life at least this often, in milliseconds. */
const mostProbeMs = 5_000;

export interface ListeningOptions {
  readonly store: WorkerStore & Partial<Notifier>;
  readonly logger: Logger;
  readonly heartbeatMs: number;
  /** Something may have become due; perhaps it is said which job. */
  readonly onWake: (hint?: JobId) => void;
}

/** Listens for notifications; null where the store has none, or cannot listen, so that polling has to do. */
export function startListening(options: ListeningOptions): Subscription | null {
  const { store, logger, heartbeatMs, onWake } = options;
  if (!store.capabilities.notifications || !store.listen) return null;
  try {
    return store.listen({ onWake, logger, probeMs: Math.min(heartbeatMs, mostProbeMs) });
  } catch (error) {
    logger.error("cannot listen for notifications; polling instead", {
      error: readDatabaseFault(error).message,
    });
    return null;
  }
}
