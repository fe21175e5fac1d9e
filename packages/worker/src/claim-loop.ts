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

/** The first and the longest wait after a claim that met locked rows, in milliseconds. */
const firstBlockedMs = 20;
const mostBlockedMs = 1_000;

/** A wake-up cuts the wait after an error short, but no shorter than this, in milliseconds. */
const leastAfterErrorMs = 250;

/** If a claim has brought all it asked for, and at least this many jobs, the next one goes out before their handlers are called. */
const largeBatch = 500;

/** What a claim tells the store about one kind. */
interface ClaimTerms {
  readonly leaseMs: number;
  readonly backstop: number | null;
}

/** What a claim brought, with the monotonic instants around it. */
export interface ClaimBatch {
  readonly jobs: readonly ClaimedJob[];
  readonly sentAt: number;
  readonly receivedAt: number;
  /** Whether the handlers wait until the next claim, which is about to go out, has been sent. */
  readonly startsAfterNext: boolean;
}

export interface ClaimLoopOptions {
  readonly store: Pick<WorkerStore, "claim">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly slots: Slots;
  /** How many jobs to claim ahead of free slots. */
  readonly ahead: () => number;
  readonly terms: (kind: string) => ClaimTerms;
  readonly priorityRatio: number | null;
  readonly pollMaxMs: number;
  /** Jobs that must not be claimed, besides those that the slots bar. */
  readonly exclude?: () => readonly JobId[];
  /** Whether there is room for more results. When there is room again, call `roomMade`. */
  readonly hasRoom: () => boolean;
  /**
   * A claim's answer was lost, so the store may hold claims that this worker does not know of: it looks for them. Resolves
   * with true when none is left; after false it is called again a while later, after a rejection soon.
   */
  readonly onAnswerLost: () => Promise<boolean>;
  readonly onBatch: (batch: ClaimBatch) => void;
  /** A claim brought nothing. */
  readonly onEmpty?: () => void;
}

/**
 * Decides when to claim. It claims whenever jobs may be waiting and slots are free, or too few jobs are claimed ahead of
 * them; one claim at a time. Otherwise it sleeps until the next job is due, a wake-up comes, or `pollMax` is over.
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
  /** The job that a notification named, if nothing else has been heard of since the last claim was sent. */
  #hint: JobId | undefined;
  /** Turns of the priority rotation that have been spent. */
  #counter = 0;
  /** Whether the handlers of the last batch wait until the next claim has gone out. */
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

  /** Whether the store may hold claims that this worker does not know of, or may yet carry such claims out. */
  get mayHoldUnknown(): boolean {
    return this.#unknown.mayExist;
  }

  start(): void {
    this.#started = true;
    this.wake();
  }

  /**
   * A job may have become due: the one that a notification named, or any. The news is kept until a claim has been sent
   * after it; a claim already in flight does not count.
   */
  wake(hint?: JobId): void {
    const { slots } = this.#options;
    this.#hint = slots.expectsMore ? undefined : hint;
    slots.expectAll();
    const earliest = this.#failedAt + leastAfterErrorMs;
    if (this.#notBefore > earliest) this.#notBefore = earliest;
    this.roomMade();
  }

  /** A slot has become free, or results have been settled: on the next turn of the event loop all free slots are claimed for. */
  roomMade(): void {
    if (this.#cancelSoon || this.#claiming || this.#stopped || !this.#started) return;
    this.#cancelSoon = this.#options.clock.soon(() => {
      this.#cancelSoon = null;
      this.#tryClaim();
    });
  }

  /** Sends no further claim. Resolves when the one in flight has been answered and its batch handed on. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSoon?.();
    this.#cancelSleep?.();
    this.#unknown.stop();
    return this.#claiming ?? Promise.resolve();
  }

  /** Looks for claims that this worker does not know of. Must not be called while a claim is in flight. */
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
    // It looks even where nothing more can be claimed now: no other worker looks for these claims.
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
    // So the server already claims while this worker is busy with these jobs.
    const startsAfterNext = jobs.length >= largeBatch && jobs.length === plan.limit;
    this.#goesOnAtOnce = startsAfterNext;
    // A small batch starts at once: somebody may be waiting for what a single job does.
    if (jobs.length > 0)
      onBatch({ jobs: inTurns(plan.turn, jobs), sentAt, receivedAt, startsAfterNext });
    else if (!this.#stopped) onEmpty?.();
    if (jobs.length < plan.limit) {
      // Handlers may have run since the answer, and their time counts.
      const wait = this.#waitAfter(result) - (clock.now() - receivedAt);
      // A store may have looked for the hint alone: the next look at everything comes no later for that.
      this.#sleep(hint === undefined ? wait : Math.min(wait, this.#wakesAt - clock.now()));
    }
  }

  #ask(plan: ClaimPlan, hint: JobId | undefined): Promise<ClaimResult> {
    const { store, worker, slots, terms, exclude } = this.#options;
    const barred = [...slots.barred(), ...(exclude?.() ?? [])];
    // A wake-up from here on may be about a job that the statement does not see, so it raises the flags again.
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

  /** How long to sleep after a claim that brought too little, unless a wake-up comes, in milliseconds. */
  #waitAfter({ jobs, waitMs, blocked }: ClaimResult): number {
    const { pollMaxMs } = this.#options;
    const isDueNow = waitMs !== null && waitMs <= 0;
    const wait = isDueNow ? pollMaxMs : Math.min(waitMs ?? Number.POSITIVE_INFINITY, pollMaxMs);
    if (jobs.length > 0 || !(blocked || isDueNow)) this.#blocked.reset();
    // A job that is due now but was not brought is as good as blocked: someone holds it. To ask at once would spin.
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
