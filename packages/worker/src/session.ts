import {
  type JobId,
  type Notifier,
  readDatabaseFault,
  type SettlementOutcome,
  type Subscription,
  type WorkerId,
  type WorkerRegistration,
  type WorkerStore,
} from "@venturi/core";
import { ClaimAhead } from "./claim-ahead.ts";
import { ClaimCheck } from "./claim-check.ts";
import { type ClaimBatch, ClaimLoop } from "./claim-loop.ts";
import type { Clock } from "./clock.ts";
import { Completer } from "./completer.ts";
import { Dispatcher } from "./dispatcher.ts";
import { endSession } from "./end-session.ts";
import { WorkerEvents } from "./events.ts";
import { HandBack, type UnstartedClaim } from "./hand-back.ts";
import type { HandlerRegistry } from "./handler-registry.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldClaims } from "./held-claims.ts";
import { LeaseExtender } from "./lease-extender.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { stillHeld, undoLostClaims } from "./lost-claims.ts";
import { describeWorker, openSession } from "./open-session.ts";
import type { ResolvedWorkerOptions } from "./options.ts";
import { Policy } from "./policy.ts";
import { RecoveryService } from "./recovery.ts";
import type { Run } from "./run.ts";
import { Settler } from "./settler.ts";
import type { Shutdown } from "./shutdown.ts";
import type { Slots } from "./slots.ts";

/** What a worker hands to each of its sessions. */
export interface SessionRequest {
  readonly store: WorkerStore & Partial<Notifier>;
  readonly clock: Clock;
  readonly options: ResolvedWorkerOptions<unknown>;
  readonly registry: HandlerRegistry;
  readonly slots: Slots;
  readonly shutdown: Shutdown;
  /** Told of every settlement that the store has confirmed. */
  readonly onSettled: (outcome: SettlementOutcome) => void;
  /**
   * Each job at most once, and the shutdown is requested when a claim brings nothing while nothing runs: for
   * `runOnce`.
   */
  readonly once: boolean;
}

interface SessionSetup extends SessionRequest {
  readonly registration: WorkerRegistration;
  readonly worker: WorkerId;
}

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

/** A connection that notifies is asked for a sign of life at least this often, in milliseconds. */
const mostProbeMs = 5_000;

/** Results that may wait to be settled beside twice the concurrency before no more is claimed. */
const spareResults = 1_000;

/** One stretch of work between the start and the end of a worker session: wires the services together. */
class Session {
  readonly #setup: SessionSetup;
  readonly #held = new HeldClaims();
  readonly #events: WorkerEvents;
  readonly #claimLoop: ClaimLoop;
  readonly #dispatcher: Dispatcher;
  readonly #settler: Settler;
  readonly #handBack: HandBack;
  readonly #leases: LeaseKeeper<Run>;
  readonly #extender: LeaseExtender;
  readonly #claimCheck: ClaimCheck;
  readonly #heartbeat: Heartbeat;
  readonly #recovery: RecoveryService;
  /** With `once`, jobs that have run and are not completed for certain: this session must not claim them again. */
  readonly #seen = new Set<JobId>();

  constructor(setup: SessionSetup) {
    const { store, clock, options, registry, slots, shutdown, registration, worker, once } = setup;
    const { logger, backoff, jitterFraction, concurrency } = options;
    const common = { store, worker, clock, logger };
    const ahead = new ClaimAhead(options.prefetch, concurrency);
    const policy = new Policy({ clock, registry, backoff, jitterFraction, logger });
    const events = new WorkerEvents({ worker: options.name, clock, logger });
    this.#setup = setup;
    this.#events = events;
    this.#recovery = new RecoveryService({
      ...common,
      jitterFraction,
      // With `once` there may be no second chance.
      sweepsFirst: once,
      backoffOf: (claim) => policy.recoveryBackoff(claim),
      isWaiting: (claim) => claim.holder === worker && this.#dispatcher.isWaiting(claim),
      onRecovery: (claim, recovery) => events.recovered(claim, recovery),
      onRecovered: () => this.#claimLoop.wake(),
      stillHeld: (claims) => stillHeld({ store, worker, held: this.#held.size }, claims),
      onOwnDone: ({ jobId, runCount }) => this.#held.remove(jobId, runCount),
    });
    this.#heartbeat = new Heartbeat({
      ...common,
      registration,
      heartbeatMs: options.heartbeatMs,
      isBrief: once,
      onBeat: (beat) => {
        this.#recovery.report(beat);
        if (!beat.wasSilent) {
          this.#claimCheck.checkIfDue();
          return;
        }
        this.#dispatcher.giveUpWaiting();
        this.#claimCheck.check();
      },
    });
    const onLost = (run: Run): void => this.#claimLost(run);
    this.#claimCheck = new ClaimCheck({
      ...common,
      claims: () => this.#dispatcher.runs(),
      onLost,
    });
    this.#extender = new LeaseExtender({
      ...common,
      onLost,
      onExtended: (run) => {
        if (run.hasEnded) return;
        this.#leases.watch(run);
        this.#recovery.forgetOwn(run.job.id, run.job.runCount);
      },
    });
    const completer = new Completer({
      ...common,
      settlement: (run, result) => policy.settlement(run, result),
      onLost,
    });
    this.#settler = new Settler({
      ...common,
      refuse: (run, note) => policy.refused(run, note),
      onSettled: (run, outcome) => this.#settled(run, outcome),
      onLost: (run) => {
        events.lost(run);
        this.#forget(run);
        // Taken by others before its lease had ended: they may have taken the claims of other runs as well.
        if (run.abortReason === null) this.#claimCheck.check();
      },
      onDropped: (run) => {
        events.dropped(run);
        this.#recovery.recoverOwn(run.toStaleClaim(worker));
      },
      onProgress: () => this.#progressed(),
    });
    this.#handBack = new HandBack({
      ...common,
      onHandedBack: (claim, verdict) => {
        if (verdict !== "lost") events.handedBack(claim);
        this.#held.removeUndone(claim);
        this.#claimLoop.wake();
      },
      onDropped: (claim) => this.#held.removeUndone(claim),
    });
    this.#leases = new LeaseKeeper<Run>({
      clock,
      onEnding: (run) => this.#dispatcher.leaseEnding(run),
      onOverdue: (run) => {
        slots.lose(run.job.id);
        if (once) this.#seen.add(run.job.id);
        this.#recovery.recoverOwn(run.toStaleClaim(worker));
      },
    });
    this.#dispatcher = new Dispatcher({
      registry,
      slots,
      ahead,
      logger,
      leases: this.#leases,
      events,
      services: {
        store,
        logger,
        clock,
        extendLease: (run, leaseMs) => this.#extender.extend(run, leaseMs),
        complete: (run, tx, note) => completer.complete(run, tx, note),
      },
      lastBeatAt: () => this.#heartbeat.lastSentAt,
      workerTimeoutMs: options.workerTimeoutMs,
      panicPolicy: options.panicPolicy,
      state: options.state,
      onEnd: (run, result) => {
        events.ended(run, result);
        const settlement = policy.settlement(run, result);
        // Also one that completes, until that is confirmed: its claim may have been lost.
        if (once) this.#seen.add(run.job.id);
        this.#settler.settle(run, settlement);
      },
      onUnstarted: ({ id, runCount, kind, leaseExpiresAt }, leaseEndsAt) =>
        this.#undo({ jobId: id, runCount, kind, leaseExpiresAt, leaseEndsAt }),
    });
    slots.onFree((mayClaimAgain) => {
      if (mayClaimAgain) this.#claimLoop.wake();
      this.#progressed();
    });
    this.#claimLoop = new ClaimLoop({
      ...common,
      slots,
      ahead: () =>
        ahead.targetNow(clock.now(), (instant) => this.#dispatcher.runningSince(instant)),
      priorityRatio: options.priorityRatio,
      pollMaxMs: once ? Number.POSITIVE_INFINITY : options.pollMaxMs,
      terms: (kind) => {
        const known = registry.get(kind);
        return { leaseMs: known?.leaseMs ?? options.leaseMs, backstop: known?.backstop ?? null };
      },
      exclude: () => [...this.#handBack.jobIds(), ...this.#seen],
      hasRoom: () => this.#settler.size <= 2 * (concurrency + ahead.target) + spareResults,
      onAnswerLost: () =>
        undoLostClaims({
          ...common,
          isHeld: (claim) => this.#held.knows(claim),
          isHere: (jobId) => slots.isRunning(jobId) || this.#dispatcher.isWaitingFor(jobId),
          leaseMsOf: (kind) => registry.get(kind)?.leaseMs ?? options.leaseMs,
          handBack: (claim) => this.#undo(claim),
        }),
      onBatch: (batch) => {
        events.claimed(batch);
        for (const job of batch.jobs) {
          this.#held.add(job);
          this.#heartbeat.noticeLease(job.leaseMs);
        }
        this.#dispatcher.start(once ? this.#withoutSeen(batch) : batch);
      },
      onEmpty: () => {
        // A kind that was at its cap has not been asked for.
        if (once && this.#isAtRest() && !slots.expectsMore) shutdown.request();
      },
    });
  }

  /** Works until the shutdown is requested, then ends what runs; returns the jobs it could not let go of. */
  async work(): Promise<JobId[]> {
    const { store, options, registry, clock, worker, shutdown, once } = this.#setup;
    const { name, concurrency } = options;
    this.#events.started(registry.kinds, concurrency);
    if (!once) options.logger.info("worker started", { name, kinds: registry.kinds, concurrency });
    const prepared = this.#heartbeat.start().then(() => this.#recovery.start());
    // With `once`, what is stale is found before the first claim, since there may be no second.
    if (once) await Promise.race([prepared, shutdown.requested]);
    const subscription = once ? null : this.#listen();
    if (!shutdown.isRequested) this.#claimLoop.start();
    await shutdown.requested;
    const unreleased = await endSession({
      store,
      worker,
      clock,
      logger: options.logger,
      shutdown,
      held: this.#held,
      claimLoop: this.#claimLoop,
      dispatcher: this.#dispatcher,
      settler: this.#settler,
      handBack: this.#handBack,
      leases: this.#leases,
      extender: this.#extender,
      claimCheck: this.#claimCheck,
      heartbeat: this.#heartbeat,
      recovery: this.#recovery,
      subscription,
    });
    this.#events.stopped(unreleased.length);
    return unreleased;
  }

  #listen(): Subscription | null {
    const { store, options } = this.#setup;
    const { logger } = options;
    if (!store.capabilities.notifications || !store.listen) return null;
    try {
      return store.listen({
        onWake: (hint) => this.#claimLoop.wake(hint),
        logger,
        probeMs: Math.min(options.heartbeatMs, mostProbeMs),
      });
    } catch (error) {
      logger.error("cannot listen for notifications; polling instead", {
        error: readDatabaseFault(error).message,
      });
      return null;
    }
  }

  #settled(run: Run, outcome: SettlementOutcome): void {
    this.#events.settled(run, outcome);
    this.#forget(run);
    if (outcome === "completed") this.#seen.delete(run.job.id);
    this.#setup.onSettled(outcome);
    // Without notifications nobody else would say that the job is pending again.
    if (outcome !== "completed" && outcome !== "dead") this.#claimLoop.wake();
  }

  /** A run has lost its claim while its handler goes on. */
  #claimLost(run: Run): void {
    if (this.#setup.once) this.#seen.add(run.job.id);
    this.#dispatcher.claimLost(run);
  }

  #forget({ job }: Run): void {
    this.#held.remove(job.id, job.runCount);
  }

  /**
   * What a claim brought but for the jobs that this session has re-pended: the claim may have been on its way
   * already. These are given back.
   */
  #withoutSeen(batch: ClaimBatch): ClaimBatch {
    const again = batch.jobs.filter(({ id }) => this.#seen.has(id));
    for (const { id, runCount, kind, leaseExpiresAt, leaseMs } of again) {
      const leaseEndsAt = batch.sentAt + leaseMs;
      this.#undo({ jobId: id, runCount, kind, leaseExpiresAt, leaseEndsAt });
    }
    return { ...batch, jobs: batch.jobs.filter(({ id }) => !this.#seen.has(id)) };
  }

  #undo(claim: UnstartedClaim): void {
    this.#held.undo(claim);
    this.#handBack.handBack(claim);
  }

  /** A handler has ended or results have been settled. */
  #progressed(): void {
    if (this.#setup.once && this.#isAtRest()) this.#claimLoop.wake();
    else this.#claimLoop.roomMade();
  }

  #isAtRest(): boolean {
    const { slots } = this.#setup;
    const isRunning = this.#dispatcher.running + slots.ahead > 0;
    return !isRunning && this.#settler.size === 0 && this.#handBack.size === 0;
  }
}
