import { COUNTED_SILENCE_MS, type StaleClaim, type WorkerId } from "@venturi/core";
import type { Beat } from "./heartbeat.ts";

/** The shortest time between two looks at the same claims, in milliseconds. */
export const scanIntervalMs = 1_000;
/** All live workers look at a worker that has gone silent. Their first looks are about this far apart, in milliseconds. */
const firstLookStepMs = 250;
/** After that they look at least this often together, for claims that have become overdue, in milliseconds. */
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

/** Decides when to look at the claims of workers that have gone silent, so that all live workers share the looks. */
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

  /** When to look at the next silent worker; `Infinity`: never. */
  get lookAt(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [worker, { lookAt }] of this.#silent)
      if (!this.#cleared.has(worker)) least = Math.min(least, lookAt);
    return least;
  }

  /** The workers whose claims to look at. */
  holders(): Holder[] {
    return [...this.#silent]
      .filter(([worker]) => !this.#cleared.has(worker))
      .map(([worker, { all }]) => ({ worker, overdueOnly: !all }));
  }

  /** A beat says which workers are silent, and how many others there are. */
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

  /** Dead workers may hold claims after all: the next look includes them again. */
  forgetCleared(): void {
    this.#cleared.clear();
  }

  /** Holders have been looked at, from `startedAt` until now: decides when to do so again. */
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
      // What a beat has said since was not part of this look, and a look that was not due yet stays due when it was.
      if (silence === undefined || silence.all === overdueOnly || silence.lookAt > startedAt)
        continue;
      silence.lookAt =
        now + (isLeft ? this.#shared(scanIntervalMs) : this.#lookAgainMs(silence, now));
    }
  }

  /**
   * How long until a suspect is looked at again, in milliseconds. Claims that it made after its last beat become overdue up
   * to a third of its silence later than it became suspect; other claims may have longer leases.
   */
  #lookAgainMs({ since }: Silence, now: number): number {
    return this.#shared(Math.min(mostLookMs, Math.max(scanIntervalMs, (now - since) / 3)));
  }

  /** A wait after which one of all lookers looks every `ms` milliseconds on average; each by itself waits longer. */
  #shared(ms: number): number {
    return ms + 2 * this.#spread(ms);
  }

  /** A random part of a time in which each looker has a step of `stepMs` milliseconds. */
  #spread(stepMs: number): number {
    return this.#random() * (this.#lookers - 1) * stepMs;
  }
}
