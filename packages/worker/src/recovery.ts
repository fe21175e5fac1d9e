import {
  COUNTED_SILENCE_MS,
  type JobId,
  type Logger,
  type StaleClaim,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import { ClaimRecoverer, type ClaimRecovererOptions } from "./claim-recoverer.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import type { Beat } from "./heartbeat.ts";
import { OwnClaims, type OwnClaimsOptions } from "./own-claims.ts";
import { Trouble } from "./trouble.ts";

/** A scan reads at most this many claims. */
const scanLimit = 1_000;
/** No two scans follow each other faster, in milliseconds. */
const scanIntervalMs = 1_000;
/** All live workers look at one that has gone silent: the first time about this far apart, in milliseconds. */
const firstLookStepMs = 250;
/** And then together at least this often, for what has become overdue since, in milliseconds. */
const mostLookMs = 5_000;
/**
 * The slow pass over all claims, of all live workers together: at least this far apart, in milliseconds, and never
 * more than a hundredth of the time.
 */
const leastSweepIntervalMs = 60_000;
const sweepShare = 100;

/** A worker that has gone silent, as the last beat said. */
interface Silence {
  /** When it beat last. */
  readonly since: number;
  /** Whether all its claims are stale, or only the overdue ones. */
  readonly all: boolean;
  /** When its claims are to be looked at. */
  lookAt: number;
}

interface Holder {
  readonly worker: WorkerId;
  readonly overdueOnly: boolean;
}

interface Found {
  readonly claims: readonly StaleClaim[];
  readonly applied: readonly boolean[];
  /** Whether there was no more to be found. */
  readonly isComplete: boolean;
}

export interface RecoveryOptions extends ClaimRecovererOptions, OwnClaimsOptions {
  readonly store: Pick<WorkerStore, "findStale" | "recover">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether to begin with a sweep, however many others there are. */
  readonly sweepsFirst: boolean;
  /** @defaultValue Math.random */
  readonly random?: () => number;
  /** Whether a claim of this very worker waits for a slot: it will be handed back, which is no failure of its job. */
  readonly isWaiting?: (claim: StaleClaim) => boolean;
}

/** Makes claims pending again (or dead) whose lease has passed or whose worker is gone. */
export class RecoveryService {
  readonly #options: RecoveryOptions;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  readonly #recoverer: ClaimRecoverer;
  readonly #own: OwnClaims;
  #silent = new Map<WorkerId, Silence>();
  /** Dead workers all of whose claims have been recovered. */
  #cleared = new Set<WorkerId>();
  #stopped = false;
  #working: Promise<void> | null = null;
  #cancelTimer: CancelTimer | null = null;
  /** No scan before. */
  #nextScanAt = Number.NEGATIVE_INFINITY;
  #sweepAt = Number.POSITIVE_INFINITY;
  #sweepIntervalMs = leastSweepIntervalMs;
  /** Among how many live workers the wait for the next sweep is shared. */
  #sweepers = 1;
  /** Other live workers, which sweep as well. */
  #others = 0;
  /** Live workers that look at the silent ones, this one among them. */
  #lookers = 1;

  constructor(options: RecoveryOptions) {
    const { clock, logger } = options;
    this.#options = options;
    this.#trouble = new Trouble({ clock, logger, doing: "recover stale claims" });
    this.#recoverer = new ClaimRecoverer(options, this.#abort.signal);
    this.#own = new OwnClaims(options);
  }

  /** Starts with a sweep, unless others are there to make it sooner or later; resolves after it. */
  async start(): Promise<void> {
    const isFirst = this.#options.sweepsFirst || this.#others === 0;
    this.#sweepAfter(isFirst ? 0 : this.#random() * this.#roundMs());
    this.#arm();
    await this.settled();
  }

  /** Hears who has gone silent, and how many others there are. */
  report({ silent, others }: Omit<Beat, "wasSilent">): void {
    const now = this.#options.clock.now();
    this.#others = others;
    this.#sweepForThoseGone(now);
    const suspects = silent.filter(({ dead, silentMs }) => !dead && silentMs < COUNTED_SILENCE_MS);
    this.#lookers = Math.max(1, others + 1 - suspects.length);
    const known = this.#silent;
    this.#silent = new Map();
    for (const { worker, mayBeTakenFrom: all, silentMs } of silent) {
      const before = known.get(worker);
      const isKnown = before !== undefined && (before.all || !all);
      const lookAt = isKnown ? before.lookAt : now + this.#spread(firstLookStepMs);
      this.#silent.set(worker, { since: now - silentMs, all, lookAt });
    }
    // Whoever beats again may hold claims again.
    for (const worker of this.#cleared)
      if (!this.#silent.get(worker)?.all) this.#cleared.delete(worker);
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

  /** The next sweep, so much later, in milliseconds. */
  #sweepAfter(ms: number): void {
    this.#sweepAt = this.#options.clock.now() + ms;
    this.#sweepers = this.#others + 1;
  }

  /**
   * Whoever has gone may have been the next to sweep: those that are left share its part of the round. One that comes
   * and goes changes nothing, however often.
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

  /** Some moment, in milliseconds, of a time in which each looker has a step. */
  #spread(stepMs: number): number {
    return this.#random() * (this.#lookers - 1) * stepMs;
  }

  /**
   * When a suspect is to be looked at again, in milliseconds. What it claimed after its last beat is overdue later than
   * it is suspect, by at most a third of its silence; other claims may have longer leases.
   */
  #lookAgainMs({ since }: Silence, now: number): number {
    return this.#inTurn(Math.min(mostLookMs, Math.max(scanIntervalMs, (now - since) / 3)));
  }

  /** An interval that all lookers keep together: for each of them, on average, as many times longer as they are. */
  #inTurn(ms: number): number {
    return ms + 2 * this.#spread(ms);
  }

  #random(): number {
    const { random = Math.random } = this.#options;
    return random();
  }

  #holders(): Holder[] {
    return [...this.#silent]
      .filter(([worker]) => !this.#cleared.has(worker))
      .map(([worker, { all }]) => ({ worker, overdueOnly: !all }));
  }

  #scanAt(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [worker, { lookAt }] of this.#silent)
      if (!this.#cleared.has(worker)) least = Math.min(least, lookAt);
    return Math.max(least, this.#nextScanAt);
  }

  #arm(): void {
    if (this.#stopped || this.#working) return;
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
    const startedAt = this.#options.clock.now();
    this.#nextScanAt = startedAt + scanIntervalMs;
    const holders = this.#holders();
    this.#looked(holders, startedAt, await this.#findAndRecover(holders, false));
  }

  /** A slow look at everything: claims without a worker, once more those of the dead, and forgotten ones of its own. */
  async #sweep(): Promise<void> {
    const { clock, worker } = this.#options;
    const startedAt = clock.now();
    this.#nextScanAt = startedAt + scanIntervalMs;
    this.#cleared.clear();
    this.#recoverer.forgetRefused();
    const holders = [...this.#holders(), { worker, overdueOnly: true }];
    const found = await this.#findAndRecover(holders, true);
    this.#looked(holders, startedAt, found);
    const took = clock.now() - startedAt;
    this.#sweepIntervalMs = Math.max(leastSweepIntervalMs, took * sweepShare);
    this.#sweepAfter(found.isComplete ? this.#roundMs() : scanIntervalMs);
  }

  /** Holders have been looked at: when to do so again. */
  #looked(holders: readonly Holder[], startedAt: number, found: Found): void {
    const { claims, applied, isComplete } = found;
    if (!isComplete) return;
    const now = this.#options.clock.now();
    const left = new Set(claims.filter((_, index) => !applied[index]).map(({ holder }) => holder));
    for (const { worker, overdueOnly } of holders) {
      const isLeft = left.has(worker);
      if (!overdueOnly && !isLeft) this.#cleared.add(worker);
      const silence = this.#silent.get(worker);
      // What a beat has said meanwhile has not been looked at, and what was not due is due as before.
      if (silence === undefined || silence.all === overdueOnly || silence.lookAt > startedAt)
        continue;
      silence.lookAt =
        now + (isLeft ? this.#inTurn(scanIntervalMs) : this.#lookAgainMs(silence, now));
    }
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
