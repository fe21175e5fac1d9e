import type { Logger, WorkerId, WorkerRegistration, WorkerStore } from "@venturi/core";
import { type Clock, settledWithin } from "./clock.ts";
import type { HandlerRegistry } from "./handler-registry.ts";
import type { ResolvedWorkerOptions } from "./options.ts";
import type { Shutdown } from "./shutdown.ts";
import { isRetryable, Trouble } from "./trouble.ts";

/** A store is given no longer time than this, in milliseconds: 365 days. */
const mostMs = 365 * 86_400_000;

/** How long a worker that was told to stop before its session has begun waits for the store, in milliseconds. */
const answerGraceMs = 1_000;

/** What a worker publishes about itself. */
export function describeWorker(
  options: ResolvedWorkerOptions<unknown>,
  registry: HandlerRegistry,
): WorkerRegistration {
  return {
    name: options.name,
    kinds: registry.kinds,
    pollMaxMs: Math.min(options.pollMaxMs, mostMs),
    workerTimeoutMs: Math.min(options.workerTimeoutMs, mostMs),
    shortestLeaseMs: registry.shortestLeaseMs,
  };
}

export interface OpenSessionOptions {
  readonly store: Pick<WorkerStore, "startWorker" | "stopWorker">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registration: WorkerRegistration;
  readonly shutdown: Shutdown;
  /** Whether to wait for a database that cannot be reached now. */
  readonly isPatient: boolean;
}

/** Opens a worker session; null when the worker was told to stop before. Rejects for what trying again cannot mend. */
export async function openSession(options: OpenSessionOptions): Promise<WorkerId | null> {
  const { clock, logger, shutdown, isPatient } = options;
  const trouble = new Trouble({ clock, logger, doing: "open a worker session" });
  while (!shutdown.isRequested) {
    try {
      const worker = await startUnlessStopped(options);
      trouble.succeeded();
      return worker;
    } catch (error) {
      if (!isPatient || !isRetryable(error)) throw error;
      await settledWithin(clock, trouble.failed(error), shutdown.requested);
    }
  }
  return null;
}

async function startUnlessStopped(options: OpenSessionOptions): Promise<WorkerId | null> {
  const { store, clock, logger, registration, shutdown } = options;
  const abort = new AbortController();
  const starting = store.startWorker({ ...registration, signal: abort.signal, logger });
  // Whoever stops the worker must not wait for a database that does not answer.
  await Promise.race([starting.catch(() => undefined), shutdown.requested]);
  if (!shutdown.isRequested) return (await starting).worker;
  const undo = starting.then(({ worker }) => store.stopWorker({ worker }));
  await settledWithin(clock, Math.min(answerGraceMs, shutdown.leftMs()), undo);
  abort.abort();
  return null;
}
