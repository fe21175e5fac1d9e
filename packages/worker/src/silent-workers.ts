import { COUNTED_SILENCE_MS, type StaleClaim, type WorkerId } from "@venturi/core";
import type { Beat } from "./heartbeat.ts";

/** No two looks at the same claims follow each other faster, in milliseconds. */
export const scanIntervalMs = 1_000;
/** All live workers look at one that has gone silent: the first time about this far apart, in milliseconds. */
const firstLookStepMs = 250;
/** And then together at least this often, for what has become overdue since, in milliseconds. */
const mostLookMs = 5_000;

/** A worker that has gone silent, as the last beat said. */
interface Silence {
  /** When it beat last. */
  readonly since: number;
  /** Whether all its claims are stale, or only the overdue ones. */
  readonly all: boolean;
  /** When its claims are to be looked at. */
  lookAt: number;
}

/** A worker whose stale claims are looked for. */
export interface Holder {
  readonly worker: WorkerId;
  readonly overdueOnly: boolean;
}

/** What a look has found. */
export interface Found {
  readonly claims: readonly StaleClaim[];
  readonly applied: readonly boolean[];
  /** Whether there was no more to be found. */
  readonly isComplete: boolean;
}

/** The workers that have gone silent, and when each is to be looked at, so that all who live share the looks. */
export class SilentWorkers {
  readonly #random: () => number;
  #silent = new Map<WorkerId, Silence>();
  /** Dead workers all of whose claims have been recovered. */
  #cleared = new Set<WorkerId>();
  /** Live workers that look at the silent ones, this one among them. */
  #lookers = 1;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** When the next one is to be looked at. */
  get lookAt(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [worker, { lookAt }] of this.#silent)
      if (!this.#cleared.has(worker)) least = Math.min(least, lookAt);
    return least;
  }

  /** Whose claims a look is for. */
  holders(): Holder[] {
    return [...this.#silent]
      .filter(([worker]) => !this.#cleared.has(worker))
      .map(([worker, { all }]) => ({ worker, overdueOnly: !all }));
  }

  /** Hears who has gone silent, and how many others there are. */
  report({ silent, others }: Omit<Beat, "wasSilent">, now: number): void {
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
  }

  /** The dead may have claims after all: the next look is for theirs as well. */
  forgetCleared(): void {
    this.#cleared.clear();
  }

  /** Holders have been looked at, from `startedAt` until now: when to do so again. */
  looked(
    holders: readonly Holder[],
    { claims, applied, isComplete }: Found,
    { startedAt, now }: { readonly startedAt: number; readonly now: number },
  ): void {
    if (!isComplete) return;
    const left = new Set(claims.filter((_, index) => !applied[index]).map(({ holder }) => holder));
    for (const { worker, overdueOnly } of holders) {
      const isLeft = left.has(worker);
      if (!overdueOnly && !isLeft) this.#cleared.add(worker);
      const silence = this.#silent.get(worker);
      // What a beat has said meanwhile has not been looked at, and what was not due is due as before.
      if (silence === undefined || silence.all === overdueOnly || silence.lookAt > startedAt)
        continue;
      silence.lookAt =
        now + (isLeft ? this.#shared(scanIntervalMs) : this.#lookAgainMs(silence, now));
    }
  }

  /**
   * When a suspect is to be looked at again, in milliseconds. What it claimed after its last beat is overdue later than
   * it is suspect, by at most a third of its silence; other claims may have longer leases.
   */
  #lookAgainMs({ since }: Silence, now: number): number {
    return this.#shared(Math.min(mostLookMs, Math.max(scanIntervalMs, (now - since) / 3)));
  }

  /** An interval that all lookers keep together: for each of them, on average, as many times longer as they are. */
  #shared(ms: number): number {
    return ms + 2 * this.#spread(ms);
  }

  /** Some moment, in milliseconds, of a time in which each looker has a step. */
  #spread(stepMs: number): number {
    return this.#random() * (this.#lookers - 1) * stepMs;
  }
}
