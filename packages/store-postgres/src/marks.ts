import { dearMs, walkCost, walkShare } from "./walk-budget.ts";

/** Where a claim or promotion starts to look, for each tier of a kind. Rows at or before it have been dealt with. */
export type Mark = readonly [high: number, normal: number, low: number];

export type Tier = 0 | 1 | 2;
export const tiers: readonly Tier[] = [0, 1, 2];

/** Where a walk begins: behind the marks, behind those of all tiers but one, or at the start. */
export type Begin = "marks" | Tier | "start";

/** How a walk is to begin. */
export interface Start {
  readonly begin: Begin;
  /** The place before all rows. */
  readonly start: Mark;
  /** Whether it may begin before a mark, at a row that is known to wait there. */
  readonly mayBeLow: boolean;
  /** On the monotonic clock, in milliseconds. */
  readonly now: number;
}

/** What a walk says about one kind and tier, as places in its order. */
export interface Found {
  /** The last row that it brought; undefined: none. */
  readonly last: number | undefined;
  /** Up to here nothing waits any more, apart from what it brought; undefined: it does not say. */
  readonly clearTo: number | undefined;
  /**
   * Up to here nothing could be claimed: whatever waits there is locked by somebody.
   * @defaultValue `clearTo`
   */
  readonly freeTo?: number | undefined;
}

/** What is known of one kind and tier, as places in its order. */
interface Track {
  /** In use: what had been seen one to two lags ago. */
  settled: number;
  /** The next mark: what had been seen when the last lag ended. */
  aging: number;
  /** The furthest place that a walk has seen to. */
  seen: number;
  /** Before the first row that is known to wait before the mark; `Infinity`: there is none. */
  floor: number;
  /** Whether the walk under way may have missed the floor: it began behind it, or a row has come back since. */
  isPassed: boolean;
}

interface Kind {
  /** When the last lag ended. */
  agedAt: number;
  /** When each tier is to be walked through from its start. */
  readonly walkAt: [high: number, normal: number, low: number];
  readonly tracks: readonly [Track, Track, Track];
}

/** An instant before all others. */
const never = Number.NEGATIVE_INFINITY;

export interface MarksOptions {
  /**
   * Marks lag behind what has been seen by one to two times this, in milliseconds, since a row with a lower `seq` may be
   * committed later.
   * @defaultValue 25
   */
  readonly lagMs?: number;
  /**
   * How often each tier is walked through from its start, in milliseconds; a walk that takes longer than a fortieth of
   * this comes less often, so that it takes a fortieth of the time.
   * @defaultValue 1,000
   */
  readonly fullWalkMs?: number;
}

/**
 * The low-water marks of one worker session: places behind which its walks begin, rather than at the start. Index entries
 * of finished jobs stay until a vacuum removes them. While somebody holds a snapshot open none is removed, and each walk
 * from the start takes longer than the last.
 *
 * A mark is only a hint. It is lowered by
 *
 * - a job that this session puts back at its old place;
 * - a job that others put back before the mark, or committed late. It is found by a walk from the start, which each tier
 *   gets now and then: tier by tier, so that a million rows of one tier do not keep a job of another waiting, and for at
 *   most a fortieth of the time. If the walk does not bring the job, the next walks begin there until one does.
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

  /** Whether a job is known to wait before the mark of one of these kinds. */
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

  /** A job may be back at an unknown place: every tier is to be walked from its start soon. */
  walkSoon(): void {
    for (const { walkAt } of this.#kinds.values()) walkAt.fill(never);
  }

  /**
   * A walk of these kinds that began at the start of one tier, or of all (null), has ended after `walkMs` milliseconds.
   */
  walked(tier: Tier | null, kinds: readonly number[], walkMs: number, now: number): void {
    const place = tier ?? 3;
    const costMs = walkCost(walkMs, this.#tookMs[place]);
    if (walkMs > dearMs) this.#tookMs[place] = walkMs;
    const next = now + Math.max(this.#fullWalkMs, costMs / walkShare);
    for (const kind of kinds) {
      const walkAt = this.#kinds.get(kind)?.walkAt;
      if (walkAt === undefined) continue;
      if (tier === null) walkAt.fill(next);
      else walkAt[tier] = next;
    }
  }

  /** Where a walk of a kind begins that starts now. */
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
   * A walk has ended. It brought the first rows of its order. With `isDear` it spent much time on rows that have ended:
   * then the next walks begin behind all of those, even if this one brought nothing.
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
    // Compared with what has been seen, not with the mark in use, which will soon be there.
    track.floor = isClearTo < track.seen ? isClearTo : Number.POSITIVE_INFINITY;
  }

  /** A job is back at a place that walks may have passed. */
  putBack(kind: number, tier: Tier, position: number): void {
    // Without marks there is nothing to lower.
    const track = this.#kinds.get(kind)?.tracks[tier];
    if (track === undefined) return;
    track.floor = Math.min(track.floor, position - 1);
    track.isPassed = true;
  }

  /** There is no backlog: the next walks look at everything. */
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

/** Undefined for the number of a row written by hand that is too large for JavaScript to tell from its neighbours. */
function safe(position: number | undefined): number | undefined {
  return position !== undefined && position <= Number.MAX_SAFE_INTEGER ? position : undefined;
}
