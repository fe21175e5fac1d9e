import type { ClaimInfo } from "./claim-answer.ts";
import type { Tier } from "./marks.ts";

/** A place (a `seq`, or an instant) for each kind and tier. */
export class PlaceMap {
  readonly #places = new Map<number, [high?: number, normal?: number, low?: number]>();

  get(kind: number, tier: Tier): number | undefined {
    return this.#places.get(kind)?.[tier];
  }

  has(kind: number): boolean {
    return this.#places.has(kind);
  }

  /** Keeps the largest place of a kind and tier. */
  raise(kind: number, tier: Tier, place: number): void {
    let places = this.#places.get(kind);
    if (places === undefined) {
      places = [];
      this.#places.set(kind, places);
    }
    places[tier] = Math.max(places[tier] ?? place, place);
  }
}

/** What the walks of a claim have found out about the kinds that it asked for. */
export interface WalkFound {
  /** The highest `seq` that a row had got when the walks began; undefined: none. */
  readonly lastSeq: number | undefined;
  /** Whether a kind is paused: then the walks say nothing about it. */
  isPaused(kind: number): boolean;
  /** The `seq` up to which nothing claimable is left, apart from what was claimed; undefined: unknown. */
  readyClearTo(kind: number, tier: Tier): number | undefined;
  /**
   * The instant up to which no scheduled job is left, in epoch milliseconds. It is never later than now: a job may yet
   * be scheduled for a time before the next one.
   */
  dueClearTo(kind: number, tier: Tier): number;
}

/** What a claim's answer says about its walks; null: nothing, since it was not asked to. */
export function readFound(info: ClaimInfo): WalkFound | null {
  if (info.found === null) return null;
  const { ready, due, paused } = info.found;
  const firstReady = placesOf(ready);
  const firstDue = placesOf(due);
  const pausedKinds = new Set(paused);
  const lastSeq = info.last_seq ?? undefined;
  return {
    lastSeq,
    isPaused: (kind) => pausedKinds.has(kind),
    readyClearTo: (kind, tier) => {
      const first = firstReady.get(kind, tier);
      return first === undefined ? lastSeq : first - 1;
    },
    dueClearTo: (kind, tier) => beforeDue(firstDue.get(kind, tier) ?? info.clock_ms),
  };
}

/** A place before everything that is due at an instant. In whole milliseconds, since the database counts finer than that. */
export function beforeDue(epochMs: number): number {
  return Math.floor(epochMs) - 1;
}

type Place = readonly [kind: number, tier: Tier, place: number];

/** What the walks of a claim have found, as the statement writes it. */
export interface ToldText {
  readonly ready: readonly Place[];
  readonly due: readonly Place[];
  readonly paused: readonly number[];
}

function placesOf(places: readonly Place[]): PlaceMap {
  const map = new PlaceMap();
  for (const [kind, tier, place] of places) map.raise(kind, tier, place);
  return map;
}
