import { dearMs } from "./walk-budget.ts";

/** Where the next claim or promotion starts looking, per kind and tier; rows at or before it have been seen to. */
export type Mark = readonly [high: number, normal: number, low: number];

export type Tier = 0 | 1 | 2;
export const tiers: readonly Tier[] = [0, 1, 2];

/** Where a walk begins: behind the marks, behind those of all tiers but one, or at the start. */
export type Begin = "marks" | Tier | "start";

/** How a walk is to begin. */
export interface Start {
  readonly begin: Begin;
  readonly start: Mark;
  readonly mayBeLow: boolean;
  readonly now: number;
}

/** What a walk says of one kind and tier. */
export interface Found {
  /** The last row that it brought; undefined: none. */
  readonly last: number | undefined;
  /** Where, apart from what it brought, nothing is left that waits; undefined: it does not say. */
  readonly clearTo: number | undefined;
  /**
   * Where nothing is left that could be had: what waits there, somebody has locked.
   * @defaultValue `clearTo`
   */
  readonly freeTo?: number | undefined;
}

/** What is known of one kind and tier. */
interface Track {
  /** In use: what had been seen when the lag before the last one ended. */
  settled: number;
  /** What had been seen when the last lag ended. */
  aging: number;
  seen: number;
  /** Before the first row that is known to wait before the mark. */
  floor: number;
  /** Whether the walk under way may have passed the floor: it began behind it, or a row has come back since. */
  isPassed: boolean;
}

interface Kind {
  agedAt: number;
  /** When each tier is to be walked through from its start. */
  readonly walkAt: [high: number, normal: number, low: number];
  readonly tracks: readonly [Track, Track, Track];
}

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
 * another waiting, and each for at most a twentieth of the time. What such a walk finds before a mark, and does not
 * bring, lowers the mark as well: the next walks begin there, until all of it has been brought in its order.
 */
export class Marks {
  readonly #kinds = new Map<number, Kind>();
  readonly #lagMs: number;
  readonly #fullWalkMs: number;
  /** How long the last dear walk from the start took, of each tier and of all. */
  readonly #tookMs: [high: number, normal: number, low: number, all: number] = [0, 0, 0, 0];

  constructor({ lagMs = 25, fullWalkMs = 1000 }: MarksOptions = {}) {
    this.#lagMs = lagMs;
    this.#fullWalkMs = fullWalkMs;
  }

  /** Whether every walk starts at the first row anyway. */
  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  /** Whether something waits before the mark of one of these kinds. */
  isLowered(kinds: readonly number[]): boolean {
    return kinds.some((kind) =>
      this.#kinds.get(kind)?.tracks.some(({ floor }) => floor < Number.POSITIVE_INFINITY),
    );
  }

  /** The tier that the walk of these kinds which starts now is to look through from its start, if any. */
  dueTier(kinds: readonly number[], now: number): Tier | null {
    let due: Tier | null = null;
    let since = now;
    for (const kind of kinds) {
      const known = this.#kinds.get(kind);
      if (known === undefined) continue;
      for (const tier of tiers) {
        const at = known.walkAt[tier];
        if (at > since || (at === since && due !== null)) continue;
        due = tier;
        since = at;
      }
    }
    return due;
  }

  /** All tiers are to be walked through from their starts soon: something may be back at a place that is not known. */
  walkSoon(): void {
    for (const { walkAt } of this.#kinds.values()) walkAt.fill(never);
  }

  /**
   * A walk of these kinds has ended that began at the start, of one tier or of all, and took so long in milliseconds.
   * What counts of a dear one is the shorter of the last two: that a server once stood still says nothing about the
   * next walk.
   */
  walked(tier: Tier | null, kinds: readonly number[], walkMs: number, now: number): void {
    const place = tier ?? 3;
    const usualMs = Math.min(walkMs, this.#tookMs[place]);
    if (walkMs > dearMs) this.#tookMs[place] = walkMs;
    const next = now + Math.max(this.#fullWalkMs, 20 * usualMs);
    for (const kind of kinds) {
      const walkAt = this.#kinds.get(kind)?.walkAt;
      if (walkAt === undefined) continue;
      if (tier === null) walkAt.fill(next);
      else walkAt[tier] = next;
    }
  }

  /**
   * Where a walk of a kind begins that starts now. `start` is before all rows; `mayBeLow`: also at what is known to
   * wait before a mark, behind which there may be much to walk past.
   */
  starts(kind: number, { begin, start, mayBeLow, now }: Start): Mark {
    const known = this.#kinds.get(kind);
    if (known !== undefined) this.#age(known, now);
    const startOf = (tier: Tier): number => {
      const track = known?.tracks[tier];
      const isFromStart = begin === "start" || begin === tier;
      if (track === undefined) return isFromStart ? start[tier] : 0;
      track.isPassed = !(isFromStart || mayBeLow) && track.floor < track.settled;
      if (isFromStart) return start[tier];
      return mayBeLow ? Math.min(track.settled, track.floor) : track.settled;
    };
    return [startOf(0), startOf(1), startOf(2)];
  }

  #age(known: Kind, now: number): void {
    if (now - known.agedAt < this.#lagMs) return;
    known.agedAt = now;
    for (const track of known.tracks) {
      track.settled = track.aging;
      track.aging = track.seen;
    }
  }

  /**
   * A walk has ended. Its rows are those that came first; where looking at what has ended was dear (`isDear`), the
   * next walks begin behind all of that, also where this one brought nothing.
   */
  ended(kind: number, tier: Tier, found: Found, isDear: boolean, now: number): void {
    const last = safe(found.last);
    const clearTo = safe(found.clearTo);
    const isClearTo = clearTo === undefined ? undefined : Math.max(clearTo, last ?? clearTo);
    const position = isDear && isClearTo !== undefined ? (safe(found.freeTo) ?? isClearTo) : last;
    if (position === undefined && !this.#kinds.has(kind)) return;
    const track = this.#track(kind, tier, now);
    if (position !== undefined && position > track.seen) track.seen = position;
    if (isClearTo === undefined || track.isPassed) return;
    // Not what is settled: the mark will soon be where all has been seen.
    track.floor = isClearTo < track.seen ? isClearTo : Number.POSITIVE_INFINITY;
  }

  /** A row is back at a place that walks may have passed. */
  putBack(kind: number, tier: Tier, position: number): void {
    // Without marks there is nothing to lower.
    const track = this.#kinds.get(kind)?.tracks[tier];
    if (track === undefined) return;
    track.floor = Math.min(track.floor, position - 1);
    track.isPassed = true;
  }

  /** A walk came back short: there is no backlog, and the next walks look at everything. */
  forget(): void {
    this.#kinds.clear();
  }

  #track(kind: number, tier: Tier, now: number): Track {
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      // The walk that makes it known began at its start.
      const at = now + this.#fullWalkMs;
      known = {
        agedAt: never,
        walkAt: [at, at, at],
        tracks: [newTrack(), newTrack(), newTrack()],
      };
      this.#kinds.set(kind, known);
    }
    return known.tracks[tier];
  }
}

function newTrack(): Track {
  return { settled: 0, aging: 0, seen: 0, floor: Number.POSITIVE_INFINITY, isPassed: false };
}

/** Numbers of rows written by hand may be too large to be told apart from their neighbours, and to be sent back. */
function safe(position: number | undefined): number | undefined {
  return position !== undefined && position <= Number.MAX_SAFE_INTEGER ? position : undefined;
}
