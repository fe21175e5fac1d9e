import {
  type Backoff,
  COUNTED_SILENCE_MS,
  decideRecovery,
  type JobId,
  type Logger,
  type Recovery,
  type StaleClaim,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { doubled } from "./growing-delay.ts";
import type { Beat } from "./heartbeat.ts";
import { hasNothingToDoWithItems } from "./refusal.ts";
import { RefusedClaims } from "./refused-claims.ts";
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

/** How many of the recovered jobs one log record names. */
const loggedIds = 10;

/** Waits between tries for a claim of its own, in milliseconds; how many tries there are, and the wait after these. */
const firstOwnMs = 20;
const mostOwnMs = 1_000;
const mostOwnTries = 10;
const rareOwnMs = 60_000;

/** Claims of its own that a worker let become overdue. */
interface OwnClaim {
  readonly claim: StaleClaim;
  tries: number;
  at: number;
}

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

export interface RecoveryOptions {
  readonly store: Pick<WorkerStore, "findStale" | "recover">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly jitterFraction: number;
  /** Whether to begin with a sweep, however many others there are. */
  readonly sweepsFirst: boolean;
  /** @defaultValue Math.random */
  readonly random?: () => number;
  /**
   * The backoff of the claim's task where it is known and the payload decodes in time, else the worker's. Never
   * throws, and never takes long.
   */
  readonly backoffOf: (claim: StaleClaim) => Backoff | Promise<Backoff>;
  /** Whether a claim of this very worker waits for a slot: it will be handed back, which is no failure of its job. */
  readonly isWaiting?: (claim: StaleClaim) => boolean;
  /** The store has confirmed that a claim was recovered. */
  readonly onRecovery?: (claim: StaleClaim, recovery: Recovery) => void;
  /** Jobs are pending again. */
  readonly onRecovered: () => void;
  /** Which of the claims given to `recoverOwn` the store still says are held, after many tries in vain. */
  readonly stillHeld: (claims: readonly StaleClaim[]) => Promise<readonly StaleClaim[]>;
  /** A claim given to `recoverOwn` is recovered, or was lost before. */
  readonly onOwnDone: (claim: StaleClaim) => void;
}

/** Makes claims pending again (or dead) whose lease has passed or whose worker is gone. */
export class RecoveryService {
  readonly #options: RecoveryOptions;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  #silent = new Map<WorkerId, Silence>();
  /** Dead workers all of whose claims have been recovered. */
  #cleared = new Set<WorkerId>();
  readonly #refused: RefusedClaims;
  #own: OwnClaim[] = [];
  #stopped = false;
  #working: Promise<void> | null = null;
  #cancelTimer: CancelTimer | null = null;
  /** No scan before. */
  #nextScanAt = Number.NEGATIVE_INFINITY;
  #sweepAt = Number.POSITIVE_INFINITY;
  /** The last sweep did not come to the end. */
  #sweepGoesOn = false;
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
    this.#refused = new RefusedClaims(logger);
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
    this.#own.push({ claim, tries: 0, at: this.#options.clock.now() });
    this.#arm();
  }

  /** The lease of such a claim has been extended after all. */
  forgetOwn(jobId: JobId, runCount: number): void {
    this.#own = this.#own.filter(
      ({ claim }) => claim.jobId !== jobId || claim.runCount !== runCount,
    );
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
    const own = this.#own.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
    const wait = Math.min(own, this.#scanAt(), this.#sweepAt) - clock.now();
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
        for (const own of this.#own) own.at = Math.max(own.at, again);
      },
    );
    void this.#working.then(() => {
      this.#working = null;
      this.#arm();
    });
  }

  async #work(): Promise<void> {
    const { clock } = this.#options;
    if (this.#own.some(({ at }) => at <= clock.now())) await this.#recoverDueOwn();
    if (this.#stopped) return;
    if (this.#sweepAt <= clock.now()) await this.#sweep();
    else if (this.#scanAt() <= clock.now()) await this.#scan();
  }

  async #recoverDueOwn(): Promise<void> {
    const { clock } = this.#options;
    const now = clock.now();
    const due = this.#own.filter(({ at }) => at <= now);
    const applied = await this.#recover(due.map(({ claim }) => claim));
    const done = new Set<OwnClaim>();
    const vain: OwnClaim[] = [];
    due.forEach((own, index) => {
      own.tries += 1;
      const isVain = own.tries >= mostOwnTries;
      own.at = clock.now() + (isVain ? rareOwnMs : doubled(firstOwnMs, mostOwnMs, own.tries));
      // Not applied: locked for a moment, not overdue by the store's clock yet, or no longer held at all.
      if (applied[index]) done.add(own);
      else if (isVain) vain.push(own);
    });
    if (vain.length > 0) {
      // One whose lease was extended by a statement that nobody answered is held for as long as that says.
      const held = new Set(await this.#options.stillHeld(vain.map(({ claim }) => claim)));
      for (const own of vain) if (!held.has(own.claim)) done.add(own);
    }
    this.#own = this.#own.filter((own) => !done.has(own));
    for (const { claim } of done) this.#options.onOwnDone(claim);
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
    // Those that it could not get past may be before others that it has not come to yet.
    if (!this.#sweepGoesOn) this.#refused.forget();
    const holders = [...this.#holders(), { worker, overdueOnly: true }];
    const found = await this.#findAndRecover(holders, true);
    this.#looked(holders, startedAt, found);
    const took = clock.now() - startedAt;
    this.#sweepIntervalMs = Math.max(leastSweepIntervalMs, took * sweepShare);
    this.#sweepGoesOn = !found.isComplete;
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
    const limit = scanLimit + this.#refused.size;
    const { claims } = await store.findStale({ holders, orphans, limit, signal });
    const fresh = claims.filter((claim) => !this.#refused.has(claim) && !isWaiting?.(claim));
    return {
      claims: fresh,
      applied: await this.#recover(fresh),
      isComplete: claims.length < limit,
    };
  }

  async #recover(claims: readonly StaleClaim[]): Promise<readonly boolean[]> {
    if (claims.length === 0) return [];
    const { backoffOf, jitterFraction } = this.#options;
    // Together: each may wait for a schema, which must not add up.
    const backoffs = await Promise.all(claims.map((claim) => backoffOf(claim)));
    const recoveries = claims.map((claim, index) =>
      decideRecovery(claim, backoffs[index] as Backoff, jitterFraction),
    );
    try {
      return await this.#apply(recoveries, claims);
    } finally {
      this.#refused.tell();
    }
  }

  async #apply(
    recoveries: readonly Recovery[],
    claims: readonly StaleClaim[],
  ): Promise<readonly boolean[]> {
    const { store, logger, onRecovery, onRecovered } = this.#options;
    try {
      const { applied } = await store.recover({ recoveries, signal: this.#abort.signal });
      const done = recoveries.filter((_, index) => applied[index]);
      if (done.length > 0) {
        const jobIds = done.slice(0, loggedIds).map(({ jobId }) => jobId);
        logger.warn("recovered stale claims", { claims: done.length, jobIds });
        recoveries.forEach((recovery, index) => {
          if (applied[index]) onRecovery?.(claims[index] as StaleClaim, recovery);
        });
        onRecovered();
      }
      return applied;
    } catch (error) {
      const [only] = recoveries;
      if (hasNothingToDoWithItems(error) || this.#stopped || only === undefined) throw error;
      if (recoveries.length === 1) {
        // One row that cannot be updated must not stop the others.
        this.#refused.add(only, error);
        return [false];
      }
      const middle = Math.ceil(recoveries.length / 2);
      const first = await this.#apply(recoveries.slice(0, middle), claims.slice(0, middle));
      const second = await this.#apply(recoveries.slice(middle), claims.slice(middle));
      return [...first, ...second];
    }
  }
}
