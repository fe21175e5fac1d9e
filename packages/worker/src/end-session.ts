import {
  type JobId,
  type Logger,
  readDatabaseFault,
  type Subscription,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { ClaimCheck } from "./claim-check.ts";
import type { ClaimLoop } from "./claim-loop.ts";
import { type Clock, settledWithin } from "./clock.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { HandBack } from "./hand-back.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { HeldClaims } from "./held-claims.ts";
import type { LeaseExtender } from "./lease-extender.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { RecoveryService } from "./recovery.ts";
import type { Run } from "./run.ts";
import type { Settler } from "./settler.ts";
import type { Shutdown } from "./shutdown.ts";

/** How many unreleased jobs one log record names. */
const loggedIds = 10;

/** What a session is made of, as far as its end is concerned. */
export interface SessionParts {
  readonly store: Pick<WorkerStore, "stopWorker">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  readonly held: HeldClaims;
  readonly claimLoop: ClaimLoop;
  readonly dispatcher: Dispatcher;
  readonly settler: Settler;
  readonly handBack: HandBack;
  readonly leases: LeaseKeeper<Run>;
  readonly extender: LeaseExtender;
  readonly claimCheck: ClaimCheck;
  readonly heartbeat: Heartbeat;
  readonly recovery: RecoveryService;
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
  const closing = [parts.subscription?.close(), parts.recovery.stop(), parts.claimCheck.stop()];
  const write = async (): Promise<void> => {
    await claimed;
    await settler.empty();
    await handBack.empty();
  };
  const drained = dispatcher.idle().then(write);
  let isWritten = await settledWithin(clock, shutdown.drainLeftMs(), drained);
  if (!isWritten) {
    dispatcher.release();
    isWritten = await settledWithin(clock, shutdown.releaseLeftMs(), write());
  }
  parts.leases.stop();
  parts.extender.stop(shutdown.reason);
  settler.abandon();
  handBack.abandon();
  const unreleased = held.jobIds();
  // A session that may still hold claims must go silent instead of ending, so that others recover them.
  const isClean = isWritten && unreleased.length === 0 && !claimLoop.hasLostAnswer;
  if (unreleased.length > 0) {
    parts.logger.warn("stopped without releasing all jobs; other workers will recover them", {
      jobs: unreleased.length,
      jobIds: unreleased.slice(0, loggedIds),
    });
  }
  await settledWithin(clock, shutdown.leftMs(), sayGoodbye(parts, closing, isClean));
  return unreleased;
}

async function sayGoodbye(
  { store, worker, heartbeat, logger }: SessionParts,
  closing: readonly (Promise<void> | undefined)[],
  isClean: boolean,
): Promise<void> {
  try {
    await Promise.all([heartbeat.stop(), ...closing]);
    if (isClean) await store.stopWorker({ worker });
  } catch (error) {
    logger.warn("could not say goodbye to the store; others will see this worker go silent", {
      error: readDatabaseFault(error).message,
    });
  }
}
