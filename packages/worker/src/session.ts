import {
  type JobId,
  type Notifier,
  readDatabaseFault,
  type SettlementOutcome,
  type StaleClaim,
  type Subscription,
  type WorkerId,
  type WorkerRegistration,
  type WorkerStore,
} from "@venturi/core";
import { ClaimLoop } from "./claim-loop.ts";
import { type Clock, settledWithin } from "./clock.ts";
import { Dispatcher } from "./dispatcher.ts";
import { HandBack } from "./hand-back.ts";
import type { HandlerRegistry } from "./handler-registry.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldClaims } from "./held-claims.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { undoLostClaims } from "./lost-claims.ts";
import { openSession } from "./open-session.ts";
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

/** A store takes no longer time than this, in milliseconds: 365 days. */
const mostMs = 365 * 86_400_000;

/**
 * Opens a worker session, works until the shutdown is requested and ends it; returns the jobs it could not let go of.
 * Rejects when the session cannot be opened for a reason that will not pass; with `once`, for any reason.
 */
export async function workSession(request: SessionRequest): Promise<JobId[]> {
  const { store, clock, options, registry, shutdown, once } = request;
  const registration: WorkerRegistration = {
    name: options.name,
    kinds: registry.kinds,
    pollMaxMs: Math.min(options.pollMaxMs, mostMs),
    workerTimeoutMs: Math.min(options.workerTimeoutMs, mostMs),
    shortestLeaseMs: registry.shortestLeaseMs,
  };
  const { logger } = options;
  const worker = await openSession({
    store,
    clock,
    logger,
    registration,
    shutdown,
    isPatient: !once,
  });
  if (worker === null) return [];
  return new Session({ ...request, registration, worker }).work();
}

/** Results that may wait to be settled beside twice the concurrency before no more is claimed. */
const spareResults = 1_000;

/** One stretch of work between the start and the end of a worker session: wires the services together. */
class Session {
  readonly #setup: SessionSetup;
  readonly #held = new HeldClaims();
  readonly #claimLoop: ClaimLoop;
  readonly #dispatcher: Dispatcher;
  readonly #settler: Settler;
  readonly #handBack: HandBack;
  readonly #leases: LeaseKeeper<Run>;
  readonly #heartbeat: Heartbeat;
  readonly #recovery: RecoveryService;
  #subscription: Subscription | null = null;
  /** Jobs that this session has re-pended and must not claim again. */
  readonly #seen = new Set<JobId>();

  constructor(setup: SessionSetup) {
    const { store, clock, options, registry, slots, shutdown, registration, worker, once } = setup;
    const { logger, backoff, jitterFraction, concurrency } = options;
    const common = { store, worker, clock, logger };
    const policy = new Policy({ registry, backoff, jitterFraction, logger });
    this.#setup = setup;
    this.#recovery = new RecoveryService({
      ...common,
      jitterFraction,
      backoffOf: (claim) => policy.recoveryBackoff(claim),
      onRecovered: () => this.#claimLoop.wake(),
      onOwnDone: ({ jobId, runCount }) => this.#held.remove(jobId, runCount),
    });
    this.#heartbeat = new Heartbeat({
      ...common,
      registration,
      heartbeatMs: options.heartbeatMs,
      onBeat: (beat) => this.#recovery.report(beat),
    });
    this.#settler = new Settler({
      ...common,
      refuse: (run, note) => {
        if (once) this.#seen.add(run.job.id);
        return policy.refused(run, note);
      },
      onSettled: (run, outcome) => this.#settled(run, outcome),
      onLost: (run) => this.#forget(run),
      onDropped: (run) => this.#recovery.recoverOwn(staleClaim(run, worker)),
      onProgress: () => this.#progressed(),
    });
    this.#handBack = new HandBack({
      ...common,
      onHandedBack: ({ jobId, runCount }) => {
        slots.undone(jobId);
        this.#held.remove(jobId, runCount);
        this.#claimLoop.wake();
      },
      onDropped: ({ jobId, runCount }) => {
        slots.undone(jobId);
        this.#held.remove(jobId, runCount);
      },
    });
    this.#leases = new LeaseKeeper<Run>({
      clock,
      onEnding: (run) => this.#dispatcher.leaseEnding(run),
      onOverdue: (run) => {
        slots.lose(run.job.id);
        if (once) this.#seen.add(run.job.id);
        this.#recovery.recoverOwn(staleClaim(run, worker));
      },
    });
    this.#dispatcher = new Dispatcher({
      registry,
      slots,
      logger,
      leases: this.#leases,
      services: { store, logger },
      state: options.state,
      onEnd: (run, result) => {
        const settlement = policy.settlement(run, result);
        if (once && settlement.outcome !== "completed") this.#seen.add(run.job.id);
        this.#settler.settle(run, settlement);
      },
      onUnstarted: ({ id, runCount }, leaseEndsAt) =>
        this.#undo({ jobId: id, runCount, leaseEndsAt }),
    });
    slots.onFree((mayClaimAgain) => {
      if (mayClaimAgain) this.#claimLoop.wake();
      this.#progressed();
    });
    this.#claimLoop = new ClaimLoop({
      ...common,
      slots,
      priorityRatio: options.priorityRatio,
      pollMaxMs: once ? Number.POSITIVE_INFINITY : options.pollMaxMs,
      terms: (kind) => {
        const known = registry.get(kind);
        return { leaseMs: known?.leaseMs ?? options.leaseMs, backstop: known?.backstop ?? null };
      },
      exclude: () => [...this.#seen],
      hasRoom: () => this.#settler.size <= 2 * concurrency + spareResults,
      onAnswerLost: () =>
        undoLostClaims({
          ...common,
          isHeld: (jobId, runCount) => this.#held.has(jobId, runCount),
          leaseMsOf: (kind) => registry.get(kind)?.leaseMs ?? options.leaseMs,
          handBack: (claim) => this.#undo(claim),
        }),
      onBatch: (batch) => {
        for (const { id, runCount, leaseMs } of batch.jobs) {
          this.#held.add(id, runCount);
          this.#heartbeat.noticeLease(leaseMs);
        }
        this.#dispatcher.start(batch);
      },
      onEmpty: () => {
        if (once && this.#isAtRest()) shutdown.request();
      },
    });
  }

  /** Works until the shutdown is requested, then ends what runs; returns the jobs it could not let go of. */
  async work(): Promise<JobId[]> {
    const { store, options, shutdown, once } = this.#setup;
    if (once) {
      // What is stale is found before the first claim, since there may be no second.
      await this.#heartbeat.start();
      await this.#recovery.start();
    } else {
      void this.#heartbeat.start();
      void this.#recovery.start();
      if (store.capabilities.notifications && store.listen) {
        const onWake = (): void => this.#claimLoop.wake();
        this.#subscription = store.listen({ onWake, logger: options.logger });
      }
    }
    if (!shutdown.isRequested) this.#claimLoop.start();
    await shutdown.requested;
    return this.#end();
  }

  #settled(run: Run, outcome: SettlementOutcome): void {
    this.#forget(run);
    this.#setup.onSettled(outcome);
    // Without notifications nobody else would say that the job is pending again.
    if (outcome !== "completed" && outcome !== "dead") this.#claimLoop.wake();
  }

  #forget({ job }: Run): void {
    this.#held.remove(job.id, job.runCount);
  }

  #undo(claim: Parameters<HandBack["handBack"]>[0]): void {
    this.#held.add(claim.jobId, claim.runCount);
    this.#setup.slots.undo(claim.jobId);
    this.#handBack.handBack(claim);
  }

  /** A handler has ended or results have been settled. */
  #progressed(): void {
    if (this.#setup.once && this.#isAtRest()) this.#claimLoop.wake();
    else this.#claimLoop.roomMade();
  }

  #isAtRest(): boolean {
    return this.#dispatcher.running === 0 && this.#settler.size === 0 && this.#handBack.size === 0;
  }

  /** Drains, then releases; never takes longer than the shutdown has left. */
  async #end(): Promise<JobId[]> {
    const { store, clock, options, shutdown, worker } = this.#setup;
    const claimed = this.#claimLoop.stop();
    this.#dispatcher.stop(shutdown.reason);
    const closed = this.#subscription?.close();
    const recovered = this.#recovery.stop();
    const written = async (): Promise<void> => {
      await claimed;
      await this.#settler.empty();
      await this.#handBack.empty();
    };
    const drained = this.#dispatcher.idle().then(written);
    if (!(await settledWithin(clock, shutdown.drainLeftMs(), drained))) {
      this.#dispatcher.release();
      await settledWithin(clock, shutdown.releaseLeftMs(), written());
    }
    this.#leases.stop();
    this.#settler.abandon();
    this.#handBack.abandon();
    const unreleased = this.#held.jobIds();
    if (unreleased.length > 0) {
      options.logger.warn("stopped without releasing all jobs; other workers will recover them", {
        jobs: unreleased.length,
        jobIds: unreleased.slice(0, 10),
      });
    }
    const farewell = async (): Promise<void> => {
      await Promise.all([this.#heartbeat.stop(), recovered, closed]);
      // A session that ends while it still holds claims must go silent instead, so that others recover them.
      if (unreleased.length === 0) await store.stopWorker({ worker });
    };
    await this.#settledOrReported(farewell());
    return unreleased;
  }

  async #settledOrReported(farewell: Promise<void>): Promise<void> {
    const { clock, options, shutdown } = this.#setup;
    const reported = farewell.catch((error: unknown) => {
      options.logger.warn(
        "could not say goodbye to the store; others will see this worker go silent",
        {
          error: readDatabaseFault(error).message,
        },
      );
    });
    await settledWithin(clock, shutdown.leftMs(), reported);
  }
}

/** A claim of this worker's own, as recovery sees it. */
function staleClaim({ job, registration }: Run, worker: WorkerId): StaleClaim {
  const { id: jobId, kind, payload, runCount, failureCount } = job;
  const { backstop } = registration;
  return { jobId, kind, payload, runCount, failureCount, backstop, holder: worker, overdue: true };
}
