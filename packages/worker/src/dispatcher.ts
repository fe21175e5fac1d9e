import {
  abortReason,
  type ClaimedJob,
  type JobId,
  type RunResult,
  type StaleClaim,
  type VenturiError,
} from "@venturi/core";
import type { ClaimAhead } from "./claim-ahead.ts";
import { ClaimBuffer } from "./claim-buffer.ts";
import type { ClaimBatch } from "./claim-loop.ts";
import { HandlerCaller, type HandlerCallerOptions } from "./handler-caller.ts";
import type { HandlerRegistry } from "./handler-registry.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { Run } from "./run.ts";
import type { Slots } from "./slots.ts";
import { StartBurst } from "./start-burst.ts";

export interface DispatcherOptions extends Omit<HandlerCallerOptions, "onUncalled"> {
  readonly registry: HandlerRegistry;
  readonly slots: Slots;
  readonly ahead: ClaimAhead;
  readonly leases: LeaseKeeper<Run>;
  /** Monotonic instant when the last beat that succeeded was sent. */
  readonly lastBeatAt: () => number;
  /** How long after that beat others may take this worker's claims, in milliseconds. */
  readonly workerTimeoutMs: number;
  /** A run has come to its end. */
  readonly onEnd: (run: Run, result: RunResult) => void;
  /** A claim whose handler never started is to be undone. */
  readonly onUnstarted: (job: ClaimedJob, leaseEndsAt: number) => void;
}

/** Starts the handlers of claimed jobs as slots become free, and tells how each run ended. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  /** Runs whose handlers go on after their call. Handlers that do nothing asynchronous never come here. */
  readonly #running = new Set<Run>();
  /** The run whose handler is being called. */
  #calling: Run | null = null;
  readonly #buffer: ClaimBuffer<Run>;
  readonly #caller: HandlerCaller;
  readonly #burst: StartBurst;
  #isStarting = false;
  #isStopped = false;
  /** Claims sent until this instant may have been taken by others. */
  #takenUntil = Number.NEGATIVE_INFINITY;
  #whenIdle: (() => void)[] = [];

  constructor(options: DispatcherOptions) {
    const { services, ahead } = options;
    this.#options = options;
    this.#buffer = new ClaimBuffer<Run>({
      clock: services.clock,
      isAuto: ahead.isAuto,
      onOverdue: (runs) => {
        ahead.stalled();
        for (const run of runs) this.#giveUp(run);
      },
    });
    this.#caller = new HandlerCaller({
      ...options,
      onEnd: (run, result) => this.#end(run, result),
      onUncalled: (run) => this.#uncalled(run),
    });
    this.#burst = new StartBurst(services.clock, () => this.#fill());
  }

  /** Handlers that have not ended. */
  get running(): number {
    return this.#running.size + (this.#calling === null ? 0 : 1);
  }

  /** How many of the handlers that run had started by an instant. */
  runningSince(instant: number): number {
    let count = 0;
    // In the order of their starts.
    for (const { startedAt } of this.#started()) {
      if (startedAt > instant) break;
      count += 1;
    }
    return count;
  }

  /** Claims whose handlers have not ended, or not started. */
  runs(): Run[] {
    return [...this.#started(), ...this.#buffer.waiting()];
  }

  /** Whether this claim waits for a slot. */
  isWaiting({ jobId, runCount }: StaleClaim): boolean {
    return this.#buffer.waiting().some(({ job }) => job.id === jobId && job.runCount === runCount);
  }

  /** Whether any claim of this job waits for a slot. */
  isWaitingFor(jobId: JobId): boolean {
    return this.#buffer.waiting().some(({ job }) => job.id === jobId);
  }

  /**
   * Starts the handlers of what a claim brought, in its order, as slots allow; with `startsAfterNext` only when the next
   * claim has gone out. After `stop` the claims are undone instead.
   */
  start({ jobs, sentAt, receivedAt, startsAfterNext }: ClaimBatch): void {
    const { registry, slots, logger, onUnstarted } = this.#options;
    const isToStart = !this.#isStopped && sentAt > this.#takenUntil;
    for (const job of jobs) {
      const registration = registry.get(job.kind);
      const run = registration && new Run(job, registration, sentAt, receivedAt);
      // A job that this very process still runs has lost its claim: it is not started beside itself.
      if (run === undefined || !isToStart || slots.isRunning(job.id)) {
        if (run === undefined)
          logger.error("the store returned a kind that was not asked for", { kind: job.kind });
        slots.bar(job.id);
        onUnstarted(job, sentAt + job.leaseMs);
        continue;
      }
      slots.reserve(run.registration.slots);
      this.#buffer.push(run);
    }
    if (startsAfterNext) this.#burst.beginSoon();
    else this.#fill();
    this.#buffer.watch();
  }

  /** Tells every running handler to end, even the one that is being called and asked for the stop. Starts no more handlers. */
  stop(reason: VenturiError): void {
    this.#isStopped = true;
    this.#caller.stop(reason);
    this.#burst.stop();
    this.#buffer.stop();
    this.#giveUpWaiting();
    for (const run of this.#started()) run.abort(reason);
  }

  /** Releases the runs of all handlers that still go on; their results are dropped. */
  release(): void {
    const { onEnd, onUnstarted } = this.#options;
    for (const run of this.#started()) {
      if (run.isReleased) continue;
      run.isReleased = true;
      if (run.context === null) onUnstarted(run.job, run.leaseEndsAt);
      else onEnd(run, { type: "released", note: "still running when the worker had to stop" });
    }
  }

  /** The lease of a run is about to end. */
  leaseEnding(run: Run): void {
    const message = "the lease of this run is ending: stop, someone else may run the job";
    run.abort(abortReason("lease-ended", message, { id: run.job.id }));
  }

  /**
   * Others may have taken this worker for dead, and may be running the jobs that wait here or that a claim under way will
   * bring: these claims are given up, and the jobs claimed again.
   */
  takenForDead(): void {
    this.#takenUntil = this.#options.services.clock.now();
    this.#giveUpWaiting();
  }

  /** A run no longer holds its claim. If its handler goes on, the job must not be started beside it in this process. */
  claimLost(run: Run): void {
    if (run.hasEnded) return;
    if (this.#buffer.remove(run)) {
      this.#giveUp(run);
      return;
    }
    const { slots, leases } = this.#options;
    const message = "this run has lost its claim: stop, someone else may run the job";
    leases.release(run);
    slots.bar(run.job.id);
    run.hasLostClaim = true;
    run.abort(abortReason("claim-lost", message, { id: run.job.id }));
  }

  /** Resolves when no handler runs. */
  idle(): Promise<void> {
    if (this.running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Starts handlers while slots are free. */
  #fill(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    const { slots, leases, ahead, services, lastBeatAt, workerTimeoutMs } = this.#options;
    const { clock } = services;
    const deadAt = lastBeatAt() + workerTimeoutMs;
    for (let now = clock.now(); this.#buffer.size > 0 && slots.hasFree; ) {
      if (!this.#burst.goesOn(now)) break;
      const run = this.#buffer.shift() as Run;
      // Its lease may have ended while it waited. Or this process was suspended for so long that others have taken it for
      // dead, and are running what it had claimed.
      const isLost =
        run.leaseEndsAt <= now || (now > deadAt && now - run.claimSentAt > workerTimeoutMs);
      if (isLost || slots.isRunning(run.job.id)) {
        slots.bar(run.job.id);
        this.#giveUp(run);
        continue;
      }
      ahead.busy(now);
      run.startedAt = now;
      slots.start();
      this.#calling = run;
      this.#caller.call(run);
      if (run.hasEnded) {
        now = run.endedAt;
        continue;
      }
      this.#calling = null;
      this.#running.add(run);
      slots.goesOn(run.job.id);
      leases.watch(run);
      now = clock.now();
    }
    this.#isStarting = false;
    if (this.#running.size === 0) ahead.idle(clock.now());
  }

  /** The runs whose handlers have started and not ended, in the order of their starts. */
  #started(): Run[] {
    return this.#calling === null ? [...this.#running] : [...this.#running, this.#calling];
  }

  #giveUpWaiting(): void {
    for (const run of this.#buffer.takeAll()) this.#giveUp(run);
  }

  /** Gives up a claim whose handler will not start: it is undone. */
  #giveUp(run: Run): void {
    const { slots, onUnstarted } = this.#options;
    slots.giveUp(run.registration.slots);
    onUnstarted(run.job, run.leaseEndsAt);
  }

  #end(run: Run, result: RunResult): void {
    if (run.hasEnded) return;
    this.#leave(run);
    if (!run.isReleased) this.#options.onEnd(run, result);
  }

  /** The worker was told to stop before the handler of a started run could be called. */
  #uncalled(run: Run): void {
    if (!run.isReleased) this.#options.onUnstarted(run.job, run.leaseEndsAt);
    run.isReleased = true;
    this.#leave(run);
  }

  /** A run is over: its slot goes to the next. */
  #leave(run: Run): void {
    const { slots, leases, ahead, services } = this.#options;
    const now = services.clock.now();
    run.hasEnded = true;
    run.endedAt = now;
    if (this.#calling === run) {
      this.#calling = null;
    } else {
      this.#running.delete(run);
      leases.release(run);
    }
    ahead.ended(now - run.startedAt, now);
    slots.free(run.registration.slots, run.job.id);
    this.#fill();
    if (this.running > 0 || this.#whenIdle.length === 0) return;
    const waiters = this.#whenIdle;
    this.#whenIdle = [];
    for (const resolve of waiters) resolve();
  }
}
