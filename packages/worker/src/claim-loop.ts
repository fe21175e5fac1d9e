import {
  type ClaimedJob,
  type ClaimPlan,
  type ClaimResult,
  inTurns,
  type JobId,
  type Logger,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { GrowingDelay } from "./growing-delay.ts";
import type { Slots } from "./slots.ts";
import { Trouble } from "./trouble.ts";
import { UnknownClaims } from "./unknown-claims.ts";

/** Waits after a claim that met locked rows, in milliseconds. */
const firstBlockedMs = 20;
const mostBlockedMs = 1_000;

/** A wake-up cuts the wait after an error short, but not below this, in milliseconds. */
const leastAfterErrorMs = 250;

/** Where a claim has brought all it asked for, and as many jobs as these, the next goes out before their handlers are called. */
const largeBatch = 500;

/** What a claim says about one kind. */
interface ClaimTerms {
  readonly leaseMs: number;
  readonly backstop: number | null;
}

/** What a claim brought, with the monotonic instants around it. */
export interface ClaimBatch {
  readonly jobs: readonly ClaimedJob[];
  readonly sentAt: number;
  readonly receivedAt: number;
  /** Whether the next claim, which is about to go out, does so before the first of their handlers is called. */
  readonly startsAfterNext: boolean;
}

export interface ClaimLoopOptions {
  readonly store: Pick<WorkerStore, "claim">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly slots: Slots;
  /** How many jobs to hold beside those that have slots. */
  readonly ahead: () => number;
  readonly terms: (kind: string) => ClaimTerms;
  readonly priorityRatio: number | null;
  readonly pollMaxMs: number;
  /** Jobs not to be claimed besides those that the slots bar. */
  readonly exclude?: () => readonly JobId[];
  /** Whether there is room for more results; when it has become so, call `roomMade`. */
  readonly hasRoom: () => boolean;
  /**
   * A claim's answer was lost, so the store may hold claims that this worker knows nothing of. Resolves with whether
   * none is left; if not, it is called again a while later. Rejects to be called again soon.
   */
  readonly onAnswerLost: () => Promise<boolean>;
  readonly onBatch: (batch: ClaimBatch) => void;
  /** A claim brought nothing. */
  readonly onEmpty?: () => void;
}

/**
 * Asks for jobs whenever slots are free, or few are claimed ahead of them, and jobs may wait: one claim at a time;
 * sleeps otherwise, until something is due, a wake-up, or `pollMax`.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #trouble: Trouble;
  readonly #unknown: UnknownClaims;
  readonly #blocked = new GrowingDelay({
    firstMs: firstBlockedMs,
    mostMs: mostBlockedMs,
    jitter: false,
  });
  /** The job that a notification named, if that is all that has been heard of since a claim asked. */
  #hint: JobId | undefined;
  /** Turns of the priority rotation spent. */
  #counter = 0;
  /** The handlers of the last batch wait until the next claim has gone out. */
  #goesOnAtOnce = false;
  #started = false;
  #stopped = false;
  /** The claim in flight. */
  #claiming: Promise<void> | null = null;
  /** After an error, no claim before this instant. */
  #notBefore = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #cancelSoon: CancelTimer | null = null;
  #cancelSleep: CancelTimer | null = null;
  /** When the sleep under way ends. */
  #wakesAt = Number.POSITIVE_INFINITY;

  constructor(options: ClaimLoopOptions) {
    const { clock, logger, pollMaxMs } = options;
    this.#options = options;
    this.#trouble = new Trouble({ clock, logger, doing: "claim jobs", mostMs: pollMaxMs });
    this.#unknown = new UnknownClaims({
      clock,
      look: () => options.onAnswerLost(),
      onLookDue: () => this.roomMade(),
    });
  }

  /** Whether the store may hold claims that this worker knows nothing of, or carry them out yet. */
  get mayHoldUnknown(): boolean {
    return this.#unknown.mayExist;
  }

  start(): void {
    this.#started = true;
    this.wake();
  }

  /**
   * Something may have become due, the job that a notification named or anything. The news is kept until a claim has
   * asked, also by a claim in flight.
   */
  wake(hint?: JobId): void {
    const { slots } = this.#options;
    this.#hint = slots.expectsMore ? undefined : hint;
    slots.expectAll();
    const earliest = this.#failedAt + leastAfterErrorMs;
    if (this.#notBefore > earliest) this.#notBefore = earliest;
    this.roomMade();
  }

  /** A slot has become free, or results have been settled: once all that is ready has run, everything that is free is claimed for. */
  roomMade(): void {
    if (this.#cancelSoon || this.#claiming || this.#stopped || !this.#started) return;
    this.#cancelSoon = this.#options.clock.soon(() => {
      this.#cancelSoon = null;
      this.#tryClaim();
    });
  }

  /** No further claim statement; resolves when the one in flight has been answered and its batch handed on. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSoon?.();
    this.#cancelSleep?.();
    this.#unknown.stop();
    return this.#claiming ?? Promise.resolve();
  }

  /** Looks for claims that this worker knows nothing of. To be called with no claim in flight. */
  lookForUnknown(): Promise<void> {
    return this.#unknown.look();
  }

  #tryClaim(): void {
    const { clock, slots, ahead, priorityRatio: ratio, hasRoom } = this.#options;
    if (this.#claiming || this.#stopped) return;
    this.#goesOnAtOnce = false;
    const wait = this.#notBefore - clock.now();
    if (wait > 0) {
      this.#sleep(wait);
      return;
    }
    const { isLookDue } = this.#unknown;
    const plan = hasRoom() ? slots.plan({ counter: this.#counter, ratio }, ahead()) : null;
    // Also where nothing more can be taken now: no other worker looks for what this one does not know of.
    if (plan === null && !isLookDue) return;
    this.#claiming = this.#lookAndClaim(isLookDue, plan).finally(() => {
      this.#claiming = null;
      if (this.#goesOnAtOnce) this.#tryClaim();
      this.roomMade();
    });
  }

  async #lookAndClaim(isLookDue: boolean, plan: ClaimPlan | null): Promise<void> {
    if (isLookDue) {
      try {
        await this.lookForUnknown();
      } catch (error) {
        this.#failed(error);
        return;
      }
    }
    if (plan !== null && !this.#stopped) await this.#claim(plan);
  }

  async #claim(plan: ClaimPlan): Promise<void> {
    const { clock, slots, onBatch, onEmpty } = this.#options;
    const hint = this.#hint;
    const sentAt = clock.now();
    let result: ClaimResult;
    try {
      result = await this.#ask(plan, hint);
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.#trouble.succeeded();
    this.#unknown.claimAnswered();
    const { jobs } = result;
    const receivedAt = clock.now();
    this.#counter += jobs.length;
    slots.learn(plan, jobs);
    // The server claims while this worker is busy with them, rather than wait until it is done.
    const startsAfterNext = jobs.length >= largeBatch && jobs.length === plan.limit;
    this.#goesOnAtOnce = startsAfterNext;
    // First of all, if they are few: somebody may be waiting for what a single job does.
    if (jobs.length > 0)
      onBatch({ jobs: inTurns(plan.turn, jobs), sentAt, receivedAt, startsAfterNext });
    else if (!this.#stopped) onEmpty?.();
    if (jobs.length < plan.limit) {
      // What the handlers that were called have taken has passed since the answer.
      const wait = this.#waitAfter(result) - (clock.now() - receivedAt);
      // A store may have looked for the hint alone, which puts off no look at everything.
      this.#sleep(hint === undefined ? wait : Math.min(wait, this.#wakesAt - clock.now()));
    }
  }

  #ask(plan: ClaimPlan, hint: JobId | undefined): Promise<ClaimResult> {
    const { store, worker, slots, terms, exclude } = this.#options;
    const barred = [...slots.barred(), ...(exclude?.() ?? [])];
    // A wake-up from here on may be about something that the statement does not see; it raises the flags again.
    slots.asking(plan);
    this.#hint = undefined;
    return store.claim({
      worker,
      limit: plan.limit,
      kinds: plan.kinds.map(({ kind, limit }) => ({ kind, limit, ...terms(kind) })),
      turn: plan.turn,
      ...(barred.length > 0 ? { exclude: barred } : {}),
      ...(hint === undefined ? {} : { hint }),
    });
  }

  /** How long nothing more can be had, unless a wake-up says otherwise. */
  #waitAfter({ jobs, waitMs, blocked }: ClaimResult): number {
    const { pollMaxMs } = this.#options;
    const isDueNow = waitMs !== null && waitMs <= 0;
    const wait = isDueNow ? pollMaxMs : Math.min(waitMs ?? Number.POSITIVE_INFINITY, pollMaxMs);
    if (jobs.length > 0 || !(blocked || isDueNow)) this.#blocked.reset();
    // Due now and yet not brought is as good as blocked: someone holds it. Asking at once would spin.
    return blocked || isDueNow ? Math.min(this.#blocked.next(), wait) : wait;
  }

  #failed(error: unknown): void {
    const { clock, slots } = this.#options;
    this.#hint = undefined;
    this.#unknown.claimFailed();
    this.#failedAt = clock.now();
    this.#notBefore = this.#failedAt + this.#trouble.failed(error);
    slots.expectAll();
  }

  #sleep(ms: number): void {
    const { clock } = this.#options;
    this.#cancelSleep?.();
    if (this.#stopped) return;
    this.#wakesAt = clock.now() + ms;
    this.#cancelSleep = clock.after(ms, () => {
      this.#cancelSleep = null;
      this.#wakesAt = Number.POSITIVE_INFINITY;
      this.wake();
    });
  }
}
