/** Where the next claim or promotion starts looking, per kind and tier; rows at or before it have been seen to. */
export type Mark = readonly [high: number, normal: number, low: number];

interface Tiers {
  /** In use: what had been seen when the lag before the last one ended. */
  settled: [number, number, number];
  /** What had been seen when the last lag ended. */
  aging: [number, number, number];
  seen: [number, number, number];
}

const fromStart: Mark = [0, 0, 0];

export interface MarksOptions {
  /** Marks lag by one to two of these, in milliseconds, since a row with a lower number may be committed later. */
  readonly lagMs?: number;
  /** One walk in this many milliseconds ignores the marks, or one in twenty times as long as it takes. */
  readonly fullWalkMs?: number;
}

/**
 * Low-water marks of one worker session: index entries of finished jobs stay behind until a vacuum can remove them,
 * and behind a snapshot that somebody holds none is removed, so that each walk from the start is slower than the
 * last. A mark is a hint only: a walk from the start follows now and then, so that nothing is left behind, and takes
 * at most a twentieth of the time, however much there is to walk.
 */
export class Marks {
  readonly #kinds = new Map<number, Tiers>();
  readonly #lagMs: number;
  readonly #fullWalkMs: number;
  #agedAt = Number.NEGATIVE_INFINITY;
  #fullWalkAt = Number.NEGATIVE_INFINITY;

  constructor({ lagMs = 25, fullWalkMs = 1000 }: MarksOptions = {}) {
    this.#lagMs = lagMs;
    this.#fullWalkMs = fullWalkMs;
  }

  /** Whether every walk starts at the first row anyway. */
  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  /** Whether the walk that starts now is to ignore the marks. Tell {@link walked} how long it took. */
  isFullWalkDue(now: number): boolean {
    return now >= this.#fullWalkAt;
  }

  /** A walk from the start has ended. */
  walked(startedAt: number, now: number): void {
    this.#fullWalkAt = now + Math.max(this.#fullWalkMs, 20 * (now - startedAt));
  }

  /** Where a walk of a kind that starts now may start. */
  of(kind: number, now: number): Mark {
    if (now - this.#agedAt >= this.#lagMs) {
      this.#agedAt = now;
      for (const tiers of this.#kinds.values()) {
        tiers.settled = tiers.aging;
        tiers.aging = [...tiers.seen];
      }
    }
    return this.#kinds.get(kind)?.settled ?? fromStart;
  }

  saw(kind: number, tier: number, position: number): void {
    // Numbers of rows written by hand may be too large to be told apart from their neighbours, and to be sent back.
    if (position > Number.MAX_SAFE_INTEGER) return;
    let tiers = this.#kinds.get(kind);
    if (tiers === undefined) {
      tiers = { settled: [0, 0, 0], aging: [0, 0, 0], seen: [0, 0, 0] };
      this.#kinds.set(kind, tiers);
    }
    const index = tier as 0 | 1 | 2;
    if (position > tiers.seen[index]) tiers.seen[index] = position;
  }

  /** A walk came back short: there is no backlog, and the next walks look at everything. */
  forget(): void {
    this.#kinds.clear();
  }
}
