/** Where the next claim or promotion starts looking, per kind and tier; rows at or before it have been seen to. */
export type Mark = readonly [high: number, normal: number, low: number];

export type Tier = 0 | 1 | 2;

/** Where a walk begins: behind the marks, behind those of all tiers but one, or at the start. */
export type Begin = "marks" | Tier | "start";

/** A walk that brings rows, the lowest of each kind and tier that it may have. */
export interface Walk {
  readonly begin: Begin;
  /** Whether it passes over rows that are there: those that were excluded. */
  readonly isLeaving: boolean;
}

/** What is known of one kind and tier. */
interface Track {
  /** In use: what had been seen when the lag before the last one ended. */
  settled: number;
  /** What had been seen when the last lag ended. */
  aging: number;
  seen: number;
  /** Before the first row that was put back at its place and has not been looked for since. */
  floor: number;
  /** Whether the walk under way began at the floor. */
  isFloorInUse: boolean;
}

interface Kind {
  agedAt: number;
  readonly tiers: readonly [Track, Track, Track];
}

const tiers: readonly Tier[] = [0, 1, 2];
const fromStart: Mark = [0, 0, 0];
/** Of a time: before all others. */
const never = Number.NEGATIVE_INFINITY;

export interface MarksOptions {
  /** Marks lag by one to two of these, in milliseconds, since a row with a lower number may be committed later. */
  readonly lagMs?: number;
  /** Of each tier, one walk in this many milliseconds ignores the marks, or one in twenty times as long as it takes. */
  readonly fullWalkMs?: number;
}

/**
 * Low-water marks of one worker session: index entries of finished jobs stay behind until a vacuum can remove them,
 * and behind a snapshot that somebody holds none is removed, so that each walk from the start is slower than the
 * last.
 *
 * A mark is a hint only. What this session puts back at its old place lowers it. For what others put there, or commit
 * late, a walk from the start follows now and then: tier by tier, so that a million rows of one do not keep a job of
 * another waiting, and each for at most a twentieth of the time. After one that found something before a mark the
 * next follows at once.
 */
export class Marks {
  readonly #kinds = new Map<number, Kind>();
  readonly #lagMs: number;
  readonly #fullWalkMs: number;
  readonly #fullWalkAt: [high: number, normal: number, low: number] = [never, never, never];

  constructor({ lagMs = 25, fullWalkMs = 1000 }: MarksOptions = {}) {
    this.#lagMs = lagMs;
    this.#fullWalkMs = fullWalkMs;
  }

  /** Whether every walk starts at the first row anyway. */
  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  /** The tier that the walk which starts now is to look through from its start, if any. */
  dueTier(now: number): Tier | null {
    const [due] = tiers
      .filter((tier) => now >= this.#fullWalkAt[tier])
      .sort((a, b) => this.#fullWalkAt[a] - this.#fullWalkAt[b]);
    return due ?? null;
  }

  /** A walk has ended that began at the start, of one tier or of all, and took so long in milliseconds. */
  walked(tier: Tier | null, walkMs: number, now: number): void {
    const next = now + Math.max(this.#fullWalkMs, 20 * walkMs);
    for (const each of tier === null ? tiers : [tier]) this.#fullWalkAt[each] = next;
  }

  /** Where a walk of a kind that starts now may start. */
  of(kind: number, now: number): Mark {
    const known = this.#kinds.get(kind);
    if (known === undefined) return fromStart;
    if (now - known.agedAt >= this.#lagMs) {
      known.agedAt = now;
      for (const track of known.tiers) {
        track.settled = track.aging;
        track.aging = track.seen;
      }
    }
    const [high, normal, low] = known.tiers;
    return [startOf(high), startOf(normal), startOf(low)];
  }

  /**
   * A walk has brought a row, and so all before it that could be had. Returns whether it began at the start and the
   * row lay before the mark: there may be more of these, which the next walk behind the mark would pass over.
   */
  saw(kind: number, tier: Tier, position: number, { begin, isLeaving }: Walk): boolean {
    // Numbers of rows written by hand may be too large to be told apart from their neighbours, and to be sent back.
    if (position > Number.MAX_SAFE_INTEGER) return false;
    const track = this.#track(kind, tier);
    if (position > track.seen) track.seen = position;
    const isFromStart = begin === "start" || begin === tier;
    const wasPassed = isFromStart && position <= Math.min(track.settled, track.floor);
    if (wasPassed) this.#fullWalkAt[tier] = never;
    // It may have brought but the first of those that were put back.
    if (track.isFloorInUse && !isLeaving) {
      track.floor = Math.max(track.floor, position);
      if (track.floor >= track.settled) track.floor = Number.POSITIVE_INFINITY;
    }
    return wasPassed;
  }

  /** The walk that has brought these rows would have brought more, had there been more. */
  sawTheRest(): void {
    for (const { tiers } of this.#kinds.values())
      for (const track of tiers) if (track.isFloorInUse) track.floor = Number.POSITIVE_INFINITY;
  }

  /** A walk from the start has found no more of a kind: what had a place when it began needs no other look. */
  sawAll(kind: number, position: Mark): void {
    const walk: Walk = { begin: "marks", isLeaving: false };
    for (const tier of tiers) this.saw(kind, tier, position[tier], walk);
  }

  /** A row is back at a place that walks may have passed. */
  putBack(kind: number, tier: Tier, position: number): void {
    // Without marks there is nothing to lower.
    if (!this.#kinds.has(kind)) return;
    const track = this.#track(kind, tier);
    track.floor = Math.min(track.floor, position - 1);
    // The walk under way may have passed it already.
    track.isFloorInUse = false;
  }

  /** A walk came back short: there is no backlog, and the next walks look at everything. */
  forget(): void {
    this.#kinds.clear();
  }

  #track(kind: number, tier: Tier): Track {
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      known = { agedAt: never, tiers: [newTrack(), newTrack(), newTrack()] };
      this.#kinds.set(kind, known);
    }
    return known.tiers[tier];
  }
}

function newTrack(): Track {
  const floor = Number.POSITIVE_INFINITY;
  return { settled: 0, aging: 0, seen: 0, floor, isFloorInUse: false };
}

function startOf(track: Track): number {
  track.isFloorInUse = track.floor < Number.POSITIVE_INFINITY;
  return Math.min(track.settled, track.floor);
}
