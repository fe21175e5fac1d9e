import type { JobId } from "@venturi/core";
import { countByKind, type Placed } from "./claim-answer.ts";
import { beforeDue, type PlaceMap, type WalkFound } from "./claim-found.ts";
import { type Begin, type Mark, Marks, type Tier, tiers } from "./marks.ts";
import type { OldPlace } from "./old-place.ts";
import { WalkBudget } from "./walk-budget.ts";

/** Before every number that a row can have, also one that was written by hand. */
const firstSeq: Mark = [-9e18, -9e18, -9e18];
const firstDue: Mark = [
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

/** What a claim has brought and found. */
export interface Learnt {
  readonly kinds: readonly { readonly id: number; readonly kind: string; readonly limit: number }[];
  /** It has brought as many jobs as it was to, so that nobody knows whether what else waits could be had. */
  readonly isCut: boolean;
  readonly jobs: readonly Placed[];
  /** The last job that was brought of each kind and tier. */
  readonly last: PlaceMap;
  /** Null: nothing is known. */
  readonly found: WalkFound | null;
  /** How long it walked without finding a job, in milliseconds. */
  readonly vainMs: number;
}

/** What was promoted of one kind and tier: the first and the last instant that it was due at, in epoch milliseconds. */
export interface Promoted {
  readonly kind: number;
  readonly tier: Tier;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Knows where the claims of one worker session begin, by what those before have brought and found. */
export class ClaimStarts {
  readonly #now: () => number;
  readonly #budget: WalkBudget;
  readonly #ready = new Marks();
  readonly #due = new Marks();
  /** What has been put back since the claim under way began, which may have been past it; null: none is under way. */
  #putBackMeanwhile: OldPlace[] | null = null;
  /** Whether the claim under way may walk past much: there is something left of its budget. */
  #mayLook = true;
  /** Something may be claimable before the marks, and nobody knows where. */
  #mayHavePassed = false;
  /** What the last claim was not to bring. */
  #excluded: ReadonlySet<JobId> = new Set();
  /** The last claim came back short, though not of hundreds: there is no backlog. */
  #isCaughtUp = false;

  constructor(now: () => number, budget: WalkBudget = new WalkBudget()) {
    this.#now = now;
    this.#budget = budget;
  }

  get mayLook(): boolean {
    return this.#mayLook;
  }

  claimBegins(): void {
    this.#putBackMeanwhile = [];
  }

  claimEnds(): void {
    const putBack = this.#putBackMeanwhile ?? [];
    this.#putBackMeanwhile = null;
    for (const { kindId, tier, seq } of putBack) this.#ready.putBack(kindId, tier, seq);
  }

  /**
   * Where a claim of these kinds begins: behind marks if there are any, but for one tier that is to be looked through
   * now and then.
   */
  begin(kinds: readonly number[], exclude: readonly JobId[] | undefined): Begin {
    const now = this.#now();
    this.#noticeExclusions(exclude);
    this.#mayLook = this.#budget.allows(now);
    const mayHavePassed = this.#mayHavePassed;
    this.#mayHavePassed = false;
    if (this.#ready.isEmpty && this.#due.isEmpty) return "start";
    if (this.#mayLook && (this.#isCaughtUp || mayHavePassed)) return "start";
    if (mayHavePassed) for (const marks of [this.#ready, this.#due]) marks.walkSoon();
    return this.#ready.dueTier(kinds, now) ?? this.#due.dueTier(kinds, now) ?? "marks";
  }

  /** A job that may be claimed again stands wherever it stood. */
  #noticeExclusions(exclude: readonly JobId[] = []): void {
    const excluded = new Set(exclude);
    for (const id of this.#excluded) if (!excluded.has(id)) this.#mayHavePassed = true;
    this.#excluded = excluded;
  }

  /** The places of each kind behind which a statement looks that begins there: of the ready, and of the scheduled. */
  places(
    kinds: readonly number[],
    begin: Begin,
  ): { readonly ready: readonly Mark[]; readonly due: readonly Mark[] } {
    const start = { begin, mayBeLow: this.#mayLook, now: this.#now() };
    return {
      ready: kinds.map((kind) => this.#ready.starts(kind, { ...start, start: firstSeq })),
      due: kinds.map((kind) => this.#due.starts(kind, { ...start, start: firstDue })),
    };
  }

  /**
   * Whether marks of these kinds are lower than they ought to be, so that a statement behind them has something to
   * tell. Of others nobody wants to know, and it costs the server a little.
   */
  areLowered(kinds: readonly number[]): boolean {
    return this.#mayLook && (this.#ready.isLowered(kinds) || this.#due.isLowered(kinds));
  }

  /**
   * A statement that began there has walked for so long without finding a job, in milliseconds. `isPaid`: also where it
   * began behind marks, which were lowered.
   */
  walked(kinds: readonly number[], begin: Begin, vainMs: number, isPaid = false): void {
    const now = this.#now();
    if (begin === "start" || isPaid) this.#budget.spend(vainMs, now);
    if (begin === "marks") return;
    for (const marks of [this.#ready, this.#due])
      marks.walked(begin === "start" ? null : begin, kinds, vainMs, now);
  }

  /** What a claim has brought and found says where the next ones begin. */
  learn({ kinds, isCut, jobs, last, found, vainMs }: Learnt): void {
    const isDear = this.#budget.isDear(vainMs);
    const now = this.#now();
    // Where there was room for more, what waits has been tried, and somebody has locked it.
    const tried = isCut ? null : countByKind(jobs);
    for (const { id, kind, limit } of kinds) {
      const known = found?.isPaused(id) === false ? found : null;
      if (known === null && !last.has(id)) continue;
      const wasTried = tried !== null && (tried.get(kind) ?? 0) < limit;
      const freeTo = wasTried ? known?.lastSeq : undefined;
      for (const tier of tiers) {
        const clearTo = known?.readyClearTo(id, tier);
        this.#ready.ended(id, tier, { last: last.get(id, tier), clearTo, freeTo }, isDear, now);
        if (known === null) continue;
        const dueClearTo = known.dueClearTo(id, tier);
        this.#due.ended(id, tier, { last: undefined, clearTo: dueClearTo }, isDear, now);
      }
    }
  }

  /** What was due has become ready: the next promotion looks behind it. */
  promoted(promoted: readonly Promoted[]): void {
    const now = this.#now();
    for (const { kind, tier, firstMs, lastMs } of promoted) {
      const found = { last: beforeDue(lastMs), clearTo: beforeDue(firstMs) };
      this.#due.ended(kind, tier, found, false, now);
    }
  }

  /** What a claim and whatever looks it took came to. */
  cameTo({
    isCaughtUp,
    hasLooked,
    vainMs,
  }: {
    readonly isCaughtUp: boolean;
    /** Whether it looked from the start. */
    readonly hasLooked: boolean;
    readonly vainMs: number;
  }): void {
    this.#isCaughtUp = isCaughtUp;
    // There is nothing to begin behind, unless looking took long: then the marks are behind all that was looked at.
    if (!isCaughtUp || !hasLooked || this.#budget.isDear(vainMs)) return;
    this.#ready.forget();
    this.#due.forget();
  }

  /** A row is pending again at its old place, which the next claim is not to pass over; null: any may be. */
  putBack(place: OldPlace | null): void {
    if (place === null) {
      this.#mayHavePassed = true;
      return;
    }
    const { kindId, tier, seq } = place;
    this.#ready.putBack(kindId, tier, seq);
    this.#putBackMeanwhile?.push(place);
  }
}
