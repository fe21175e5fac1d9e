import type { ClaimInfo } from "./claim-answer.ts";
import type { Tier } from "./marks.ts";

/** A place for each kind and tier. */
export class PlaceMap {
  readonly #places = new Map<number, [high?: number, normal?: number, low?: number]>();

  get(kind: number, tier: Tier): number | undefined {
    return this.#places.get(kind)?.[tier];
  }

  has(kind: number): boolean {
    return this.#places.has(kind);
  }

  /** Keeps the largest. */
  raise(kind: number, tier: Tier, place: number): void {
    let places = this.#places.get(kind);
    if (places === undefined) {
      places = [];
      this.#places.set(kind, places);
    }
    places[tier] = Math.max(places[tier] ?? place, place);
  }
}

/** What the walks of a claim have found of the kinds that it asked for. */
export interface WalkFound {
  /** The last number that a row had got when they began; undefined: none. */
  readonly lastSeq: number | undefined;
  /** Of a kind that is paused nothing is known. */
  isPaused(kind: number): boolean;
  /** Where nothing is left that could be claimed, apart from what was; undefined: nobody knows. */
  readyClearTo(kind: number, tier: Tier): number | undefined;
  /** The same of the scheduled, in epoch milliseconds: not beyond now, since something may be scheduled before the next. */
  dueClearTo(kind: number, tier: Tier): number;
}

/** What a claim's answer tells of its walks; null: nothing, since nobody wanted to know. */
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

/** A place before all that is due at an instant: of whole milliseconds, since the instant may be a fraction later. */
export function beforeDue(epochMs: number): number {
  return Math.floor(epochMs) - 1;
}

type Place = readonly [kind: number, tier: Tier, place: number];

/** What the walks of a claim have found, as the statement tells it. */
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
