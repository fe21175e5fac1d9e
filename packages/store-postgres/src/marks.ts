/** Where the next claim or promotion starts looking, per kind and tier; rows at or before it have been seen to. */
export type Mark = readonly [high: number, normal: number, low: number];

interface Tiers {
  /** In use: what had been seen a lag ago. */
  settled: [number, number, number];
  /** What had been seen when the lag began. */
  aging: [number, number, number];
  seen: [number, number, number];
}

const nothing: Mark = [0, 0, 0];

/**
 * Low-water marks of one worker session: index entries of finished jobs stay behind until a vacuum can remove them,
 * and behind a snapshot that somebody holds none is removed, so that each walk from the start is slower than the
 * last. A mark is a hint only. It lags, since a row with an earlier number may be committed later; and one walk per
 * lag ignores it, so that nothing is left behind for longer.
 */
export class Marks {
  readonly #kinds = new Map<number, Tiers>();
  readonly #lagMs: number;
  #turnedAt = Number.NEGATIVE_INFINITY;

  constructor(lagMs = 1000) {
    this.#lagMs = lagMs;
  }

  /** Whether the walk that starts now must ignore the marks. True once per lag. */
  turn(now: number): boolean {
    if (now - this.#turnedAt < this.#lagMs) return false;
    this.#turnedAt = now;
    for (const tiers of this.#kinds.values()) {
      tiers.settled = tiers.aging;
      tiers.aging = [...tiers.seen];
    }
    return true;
  }

  of(kind: number): Mark {
    return this.#kinds.get(kind)?.settled ?? nothing;
  }

  saw(kind: number, tier: number, position: number): void {
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
