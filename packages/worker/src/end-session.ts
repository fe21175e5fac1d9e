import {
  type JobId,
  type Logger,
  readDatabaseFault,
  type Subscription,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import { type Clock, settledWithin } from "./clock.ts";
import { loggedIds } from "./logged-ids.ts";
import type { SessionServices } from "./session-services.ts";
import type { Shutdown } from "./shutdown.ts";

/**
 * After a lost answer the store is looked through twice at the end, this far apart, in milliseconds: a claim that waits
 * on its connection for what the first look waits for may be carried out just after it.
 */
const secondLookMs = 250;

/** How long a worker that holds nothing waits for a store that does not answer, in milliseconds. */
const answerGraceMs = 1_000;

/** What a session is made of, as far as its end is concerned. */
export interface SessionParts
  extends Omit<SessionServices, "ahead" | "policy" | "events" | "seen"> {
  readonly store: Pick<WorkerStore, "stopWorker">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  readonly subscription: Subscription | null;
}

/**
 * Ends a session: no further claim; handlers may end until the shutdown timeout, and are released then; results are
 * written as long as there is time. Returns the jobs that are still claimed. Never takes longer than the shutdown has
 * left, and beats until all is written, so that nobody takes the jobs over meanwhile.
 */
export async function endSession(parts: SessionParts): Promise<JobId[]> {
  const { clock, shutdown, held, claimLoop, dispatcher, settler, handBack } = parts;
  const claimed = claimLoop.stop();
  dispatcher.stop(shutdown.reason);
  const closing = [
    end(parts, "stop listening for notifications", () => parts.subscription?.close()),
    end(parts, "stop the recovery", () => parts.recovery.stop()),
    end(parts, "stop looking after claims", () => parts.claimCheck.stop()),
  ];
  let looked: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    await claimed;
    looked ??= lookForUnknown(parts);
    await looked;
    await settler.empty();
    await handBack.empty();
  };
  const drained = dispatcher.idle().then(write);
  let isWritten = await settledWithin(clock, shutdown.drainLeftMs(), drained);
  if (!isWritten) {
    logStragglers(parts);
    dispatcher.release();
    isWritten = await settledWithin(clock, shutdown.releaseLeftMs(), write());
  }
  parts.leases.stop();
  parts.extender.stop(shutdown.reason);
  settler.abandon();
  handBack.abandon();
  const unreleased = held.jobIds();
  // A session that may still hold claims must go silent instead of ending, so that others recover them.
  const isClean = isWritten && unreleased.length === 0 && !claimLoop.mayHoldUnknown;
  if (unreleased.length > 0) {
    parts.logger.warn("stopped without releasing all jobs; other workers will recover them", {
      jobs: unreleased.length,
      jobIds: loggedIds(unreleased),
    });
  }
  const graceMs = unreleased.length === 0 ? answerGraceMs : Number.POSITIVE_INFINITY;
  const goodbye = sayGoodbye(parts, { closing, isClean, graceMs });
  await settledWithin(clock, shutdown.leftMs(), goodbye);
  return unreleased;
}

/** Ends one part of the session; where that fails, the others go on. */
async function end(
  { logger }: SessionParts,
  doing: string,
  stop: () => Promise<void> | undefined,
): Promise<void> {
  try {
    await stop();
  } catch (error) {
    logger.warn(`could not ${doing}`, { error: readDatabaseFault(error).message });
  }
}

/** Handlers that took no notice of their signals: whoever deploys should know. */
function logStragglers({ dispatcher, logger }: SessionParts): void {
  const stragglers = dispatcher.runs().filter((run) => run.context !== null && !run.isReleased);
  if (stragglers.length === 0) return;
  logger.warn("handlers did not stop within the shutdown timeout; their jobs are released", {
    jobs: stragglers.length,
    jobIds: loggedIds(stragglers.map(({ job }) => job.id)),
  });
}

/**
 * Has claims handed back whose answers were lost, as far as the store can be asked. Never rejects: what is not found
 * is left to others, who will see this worker go silent.
 */
async function lookForUnknown(parts: SessionParts): Promise<void> {
  const { claimLoop, clock, shutdown, logger } = parts;
  if (!claimLoop.mayHoldUnknown) return;
  try {
    await claimLoop.lookForUnknown();
    if (shutdown.releaseLeftMs() <= secondLookMs) return;
    await new Promise<void>((resolve) => clock.after(secondLookMs, resolve));
    await claimLoop.lookForUnknown();
  } catch (error) {
    logger.warn("could not look for claims whose answers were lost", {
      error: readDatabaseFault(error).message,
    });
  }
}

interface Goodbye {
  /** Parts that are ending. */
  readonly closing: readonly Promise<void>[];
  /** Whether the store is told that this worker has gone. */
  readonly isClean: boolean;
  /** How long to wait for what has not been answered yet. */
  readonly graceMs: number;
}

async function sayGoodbye(
  parts: SessionParts,
  { closing, isClean, graceMs }: Goodbye,
): Promise<void> {
  const { store, worker, clock, heartbeat } = parts;
  const beats = end(parts, "stop the heartbeat", () => heartbeat.stop());
  const isAnswered = await settledWithin(clock, graceMs, Promise.all([beats, ...closing]));
  if (!isClean) return;
  const doing = "say goodbye to the store; others will see this worker go silent";
  const goodbye = end(parts, doing, () => store.stopWorker({ worker }));
  // A store that has not answered a beat may not answer this either.
  await settledWithin(clock, isAnswered ? Number.POSITIVE_INFINITY : graceMs, goodbye);
}
