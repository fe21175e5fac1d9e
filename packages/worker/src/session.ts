import type {
  JobId,
  Recovery,
  RunResult,
  SettlementOutcome,
  StaleClaim,
  Subscription,
} from "@venturi/core";
import type { ClaimBatch } from "./claim-loop.ts";
import { endSession } from "./end-session.ts";
import { toUnstarted, type UnstartedClaim } from "./hand-back.ts";
import type { Beat } from "./heartbeat.ts";
import { startListening } from "./listening.ts";
import { describeWorker, openSession } from "./open-session.ts";
import type { Run } from "./run.ts";
import type { SessionReactions } from "./session-reactions.ts";
import { makeServices, type ServicesSetup, type SessionServices } from "./session-services.ts";
import type { Shutdown } from "./shutdown.ts";

interface SessionSetup extends ServicesSetup {
  readonly shutdown: Shutdown;
  /** Told of every settlement that the store has confirmed. */
  readonly onSettled: (outcome: SettlementOutcome) => void;
}

/** What a worker hands to each of its sessions. */
export type SessionRequest = Omit<SessionSetup, "worker" | "registration">;

/**
 * Opens a worker session, works until the shutdown is requested and ends it; returns the jobs it could not let go of.
 * Rejects when the session cannot be opened for a reason that will not pass; with `once`, for any reason.
 */
export async function workSession(request: SessionRequest): Promise<JobId[]> {
  const { store, clock, options, registry, shutdown, once } = request;
  const { logger } = options;
  const registration = describeWorker(options, registry);
  const opening = { store, clock, logger, registration, shutdown, isPatient: !once };
  const worker = await openSession(opening);
  return worker === null ? [] : new Session({ ...request, registration, worker }).work();
}

/**
 * One stretch of work between the start and the end of a worker session: starts the services, sees to what follows from
 * what they tell, and ends them.
 */
class Session implements SessionReactions {
  readonly #setup: SessionSetup;
  readonly #services: SessionServices;

  constructor(setup: SessionSetup) {
    this.#setup = setup;
    this.#services = makeServices(setup, this);
  }

  /** Works until the shutdown is requested, then ends what runs; returns the jobs it could not let go of. */
  async work(): Promise<JobId[]> {
    const { options, registry, shutdown, once } = this.#setup;
    const { events, heartbeat, recovery, claimLoop, dispatcher } = this.#services;
    const { name, concurrency, logger } = options;
    // A handler may have told it to stop, within its call: the next one is not called any more. Or a claim has just
    // been answered: the next one does not go out.
    shutdown.onRequest(() => {
      void claimLoop.stop();
      dispatcher.stop(shutdown.reason);
    });
    events.started(registry.kinds, concurrency);
    if (!once) logger.info("worker started", { name, kinds: registry.kinds, concurrency });
    const prepared = heartbeat.start().then(() => recovery.start());
    // With `once`, what is stale is found before the first claim, since there may be no second.
    if (once) await Promise.race([prepared, shutdown.requested]);
    const subscription = once ? null : this.#listen();
    if (!shutdown.isRequested) claimLoop.start();
    await shutdown.requested;
    const unreleased = await endSession({
      ...this.#setup,
      ...this.#services,
      logger,
      subscription,
    });
    events.stopped(unreleased.length);
    return unreleased;
  }

  #listen(): Subscription | null {
    const { store, options } = this.#setup;
    const { logger, heartbeatMs } = options;
    const onWake = (hint?: JobId): void => this.#services.claimLoop.wake(hint);
    return startListening({ store, logger, heartbeatMs, onWake });
  }

  heard(beat: Beat): void {
    const { recovery, dispatcher, claimCheck } = this.#services;
    recovery.report(beat);
    if (!beat.wasSilent) {
      claimCheck.checkIfDue();
      return;
    }
    dispatcher.takenForDead();
    claimCheck.check();
  }

  mayClaim(): void {
    this.#services.claimLoop.wake();
  }

  claimed(batch: ClaimBatch): void {
    const { events, held, heartbeat, dispatcher } = this.#services;
    events.claimed(batch);
    for (const job of batch.jobs) {
      held.add(job);
      heartbeat.noticeLease(job.leaseMs);
    }
    dispatcher.start(this.#setup.once ? this.#withoutSeen(batch) : batch);
  }

  /** What a claim brought but for what has been seen, which is given back: the claim may have been on its way already. */
  #withoutSeen(batch: ClaimBatch): ClaimBatch {
    const { fresh, seen } = this.#services.seen.sort(batch.jobs);
    for (const job of seen) this.unstarted(toUnstarted(job, batch.sentAt + job.leaseMs));
    return { ...batch, jobs: fresh };
  }

  claimedNothing(): void {
    const { once, slots, shutdown } = this.#setup;
    // A kind that was at its cap has not been asked for.
    if (once && this.#isAtRest() && !slots.expectsMore) shutdown.request();
  }

  unstarted(claim: UnstartedClaim): void {
    const { held, handBack } = this.#services;
    held.undo(claim);
    handBack.handBack(claim);
  }

  handedBack(claim: UnstartedClaim, isLost: boolean): void {
    const { events, held, claimLoop } = this.#services;
    if (!isLost) events.handedBack(claim);
    held.removeUndone(claim);
    claimLoop.wake();
  }

  notHandedBack(claim: UnstartedClaim): void {
    this.#services.held.removeUndone(claim);
  }

  ended(run: Run, result: RunResult): void {
    const { events, policy, seen, settler } = this.#services;
    events.ended(run, result);
    const settlement = policy.settlement(run, result);
    // Also one that completes, until that is confirmed: its claim may have been lost.
    seen.add(run.job.id);
    settler.settle(run, settlement);
  }

  slotFreed(wasBarred: boolean): void {
    if (wasBarred) this.#services.claimLoop.wake();
    this.progressed();
  }

  settled(run: Run, outcome: SettlementOutcome): void {
    const { events, seen, claimLoop } = this.#services;
    events.settled(run, outcome);
    this.#forget(run);
    if (outcome === "completed") seen.completed(run.job.id);
    this.#setup.onSettled(outcome);
    // Without notifications nobody else would say that the job is pending again.
    if (outcome !== "completed" && outcome !== "dead") claimLoop.wake();
  }

  settledInVain(run: Run): void {
    const { events, claimCheck } = this.#services;
    events.lost(run);
    this.#forget(run);
    // Taken by others before its lease had ended: they may have taken the claims of other runs as well.
    if (run.abortReason === null) claimCheck.check();
  }

  notSettled(run: Run): void {
    const { events, recovery } = this.#services;
    events.dropped(run);
    recovery.recoverOwn(run.toStaleClaim(this.#setup.worker));
  }

  progressed(): void {
    const { claimLoop } = this.#services;
    if (this.#setup.once && this.#isAtRest()) claimLoop.wake();
    else claimLoop.roomMade();
  }

  leaseExtended(run: Run): void {
    if (run.hasEnded) return;
    const { leases, recovery } = this.#services;
    leases.watch(run);
    recovery.forgetOwn(run.job.id, run.job.runCount);
  }

  leaseEnding(run: Run): void {
    this.#services.dispatcher.leaseEnding(run);
  }

  leaseOverdue(run: Run): void {
    const { seen, recovery } = this.#services;
    const { slots, worker } = this.#setup;
    slots.bar(run.job.id);
    seen.add(run.job.id);
    recovery.recoverOwn(run.toStaleClaim(worker));
  }

  claimLost(run: Run): void {
    const { seen, dispatcher } = this.#services;
    seen.add(run.job.id);
    dispatcher.claimLost(run);
  }

  recovered(claim: StaleClaim, recovery: Recovery): void {
    this.#services.events.recovered(claim, recovery);
  }

  ownRecovered({ jobId, runCount }: StaleClaim): void {
    this.#services.held.remove(jobId, runCount);
  }

  #forget({ job }: Run): void {
    this.#services.held.remove(job.id, job.runCount);
  }

  #isAtRest(): boolean {
    const { slots } = this.#setup;
    const { dispatcher, settler, handBack } = this.#services;
    const isRunning = dispatcher.running + slots.ahead > 0;
    return !isRunning && settler.size === 0 && handBack.size === 0;
  }
}
