import type { JobId, Logger, StaleClaim, WorkerId, WorkerStore } from "@venturi/core";
import { ClaimRecoverer, type ClaimRecovererOptions } from "./claim-recoverer.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import type { Beat } from "./heartbeat.ts";
import { OwnClaims, type OwnClaimsOptions } from "./own-claims.ts";
import { type Found, type Holder, SilentWorkers, scanIntervalMs } from "./silent-workers.ts";
import { Trouble } from "./trouble.ts";

/** A scan reads at most this many claims. */
const scanLimit = 1_000;
/** Sweeps, the slow looks at all claims, are at least this far apart for all live workers together, in milliseconds. */
const leastSweepIntervalMs = 60_000;
/** And so far apart that they take at most one part in so many of the time. */
const sweepShare = 100;

export interface RecoveryOptions extends ClaimRecovererOptions, OwnClaimsOptions {
  readonly store: Pick<WorkerStore, "findStale" | "recover">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether to begin with a sweep, however many others there are. */
  readonly sweepsFirst: boolean;
  /** @defaultValue Math.random */
  readonly random?: () => number;
  /** Whether a claim of this very worker waits for a slot or is handed back, which is no failure of its job. */
  readonly isWaiting?: (claim: StaleClaim) => boolean;
}

/** Recovers jobs whose lease has passed or whose worker is gone: each is pending again, or dead. */
export class RecoveryService {
  readonly #options: RecoveryOptions;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  readonly #recoverer: ClaimRecoverer;
  readonly #own: OwnClaims;
  readonly #silent: SilentWorkers;
  #started = false;
  #stopped = false;
  #working: Promise<void> | null = null;
  #cancelTimer: CancelTimer | null = null;
  /** No scan before this instant. */
  #nextScanAt = Number.NEGATIVE_INFINITY;
  #sweepAt = Number.POSITIVE_INFINITY;
  /** Whether the last sweep did not reach the end. */
  #sweepGoesOn = false;
  #sweepIntervalMs = leastSweepIntervalMs;
  /** Among how many live workers the wait for the next sweep is shared. */
  #sweepers = 1;
  /** Other live workers, which sweep as well. */
  #others = 0;

  constructor(options: RecoveryOptions) {
    const { clock, logger } = options;
    this.#options = options;
    this.#trouble = new Trouble({ clock, logger, doing: "recover stale claims" });
    this.#recoverer = new ClaimRecoverer(options, this.#abort.signal);
    this.#own = new OwnClaims(options);
    this.#silent = new SilentWorkers(() => this.#random());
  }

  /** Starts with a sweep, unless there are other workers, which sweep too. Resolves when it is done. */
  async start(): Promise<void> {
    this.#started = true;
    const isFirst = this.#options.sweepsFirst || this.#others === 0;
    this.#sweepAfter(isFirst ? 0 : this.#random() * this.#roundMs());
    this.#arm();
    await this.settled();
  }

  /** A beat says which workers are silent, and how many others there are. */
  report(beat: Omit<Beat, "wasSilent">): void {
    const now = this.#options.clock.now();
    this.#others = beat.others;
    this.#sweepForThoseGone(now);
    this.#silent.report(beat, now);
    this.#arm();
  }

  /** Takes over a claim of this very worker whose lease has passed. */
  recoverOwn(claim: StaleClaim): void {
    this.#own.add(claim);
    this.#arm();
  }

  /** The lease of such a claim has been extended after all. */
  forgetOwn(jobId: JobId, runCount: number): void {
    this.#own.forget(jobId, runCount);
  }

  /** Resolves when nothing is known to be recoverable now. */
  async settled(): Promise<void> {
    while (this.#working) await this.#working;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#abort.abort();
    await this.#working;
  }

  /** Plans the next sweep for `ms` milliseconds from now. */
  #sweepAfter(ms: number): void {
    this.#sweepAt = this.#options.clock.now() + ms;
    this.#sweepers = this.#others + 1;
  }

  /**
   * A worker that has gone may have been the next to sweep: the others sweep sooner, in proportion. A worker that comes and
   * goes changes nothing, however often.
   */
  #sweepForThoseGone(now: number): void {
    const sweepers = this.#others + 1;
    if (sweepers >= this.#sweepers) return;
    const left = Math.max(0, this.#sweepAt - now);
    this.#sweepAt = now + (left * sweepers) / this.#sweepers;
    this.#sweepers = sweepers;
  }

  #roundMs(): number {
    return this.#sweepIntervalMs * (this.#others + 1);
  }

  #random(): number {
    const { random = Math.random } = this.#options;
    return random();
  }

  #scanAt(): number {
    return Math.max(this.#silent.lookAt, this.#nextScanAt);
  }

  #arm(): void {
    // What is reported before the start waits for it: a first sweep looks at those who are silent as well.
    if (!this.#started || this.#stopped || this.#working) return;
    this.#cancelTimer?.();
    const { clock } = this.#options;
    const wait = Math.min(this.#own.nextAt, this.#scanAt(), this.#sweepAt) - clock.now();
    if (wait > 0) this.#cancelTimer = clock.after(wait, () => this.#arm());
    else this.#begin();
  }

  #begin(): void {
    this.#working = this.#work().then(
      () => this.#trouble.succeeded(),
      (error: unknown) => {
        if (this.#stopped) return;
        const again = this.#options.clock.now() + this.#trouble.failed(error);
        this.#nextScanAt = Math.max(this.#nextScanAt, again);
        this.#sweepAt = Math.max(this.#sweepAt, again);
        this.#own.putOff(again);
      },
    );
    void this.#working.then(() => {
      this.#working = null;
      this.#arm();
    });
  }

  async #work(): Promise<void> {
    const { clock } = this.#options;
    if (this.#own.nextAt <= clock.now())
      await this.#own.recoverDue((claims) => this.#recoverer.recover(claims));
    if (this.#stopped) return;
    if (this.#sweepAt <= clock.now()) await this.#sweep();
    else if (this.#scanAt() <= clock.now()) await this.#scan();
  }

  async #scan(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.now();
    this.#nextScanAt = startedAt + scanIntervalMs;
    const holders = this.#silent.holders();
    const found = await this.#findAndRecover(holders, false);
    this.#silent.looked(holders, found, { startedAt, now: clock.now() });
  }

  /** Looks at all claims: those without a worker, once more those of dead workers, and overdue ones of this worker's own. */
  async #sweep(): Promise<void> {
    const { clock, worker } = this.#options;
    const startedAt = clock.now();
    this.#nextScanAt = startedAt + scanIntervalMs;
    this.#silent.forgetCleared();
    // Refused claims may stand before others that the sweep has not reached yet, so they are skipped until it is over.
    if (!this.#sweepGoesOn) this.#recoverer.forgetRefused();
    const holders = [...this.#silent.holders(), { worker, overdueOnly: true }];
    const found = await this.#findAndRecover(holders, true);
    const now = clock.now();
    this.#silent.looked(holders, found, { startedAt, now });
    const took = now - startedAt;
    this.#sweepIntervalMs = Math.max(leastSweepIntervalMs, took * sweepShare);
    this.#sweepGoesOn = !found.isComplete;
    this.#sweepAfter(found.isComplete ? this.#roundMs() : scanIntervalMs);
  }

  async #findAndRecover(holders: readonly Holder[], orphans: boolean): Promise<Found> {
    const { store, isWaiting } = this.#options;
    const signal = this.#abort.signal;
    const limit = scanLimit + this.#recoverer.refused;
    const { claims } = await store.findStale({ holders, orphans, limit, signal });
    const fresh = claims.filter(
      (claim) => !this.#recoverer.isRefused(claim) && !isWaiting?.(claim),
    );
    return {
      claims: fresh,
      applied: await this.#recoverer.recover(fresh),
      isComplete: claims.length < limit,
    };
  }
}
