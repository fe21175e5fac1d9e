import type { JobId } from "@venturi/core";
import { countByKind, type Placed } from "./claim-answer.ts";
import { beforeDue, type PlaceMap, type WalkFound } from "./claim-found.ts";
import { type Begin, type Mark, Marks, type Tier, tiers } from "./marks.ts";
import type { OldPlace } from "./old-place.ts";
import { WalkBudget } from "./walk-budget.ts";

/** Before every `seq` that a row can have, even one written by hand. */
const firstSeq: Mark = [-9e18, -9e18, -9e18];
const firstDue: Mark = [
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

/** What a claim has brought, and what it has found out about the rest. */
export interface Learnt {
  readonly kinds: readonly { readonly id: number; readonly kind: string; readonly limit: number }[];
  /** It has brought as many jobs as it was to bring, so it has not tried to lock what else waits. */
  readonly isCut: boolean;
  readonly jobs: readonly Placed[];
  /** The last job that was brought of each kind and tier. */
  readonly last: PlaceMap;
  /** Null: unknown. */
  readonly found: WalkFound | null;
  /** How long it walked past rows that were not claimed, in milliseconds. */
  readonly vainMs: number;
}

/** The jobs of one kind and tier that were promoted together: the earliest and the latest of their due times, in epoch milliseconds. */
export interface Promoted {
  readonly kind: number;
  readonly tier: Tier;
  readonly firstMs: number;
  readonly lastMs: number;
}

/**
 * Decides where the claims of one worker session begin to look, from what earlier claims have brought and found: at the
 * start, or behind the low-water marks of each kind and tier.
 */
export class ClaimStarts {
  readonly #now: () => number;
  readonly #budget: WalkBudget;
  readonly #ready = new Marks();
  readonly #due = new Marks();
  /** Jobs put back since the claim under way began, which may have missed them; null: none is under way. */
  #putBackMeanwhile: OldPlace[] | null = null;
  /** Whether the claim under way has some budget left. */
  #mayLook = true;
  /** Something may be claimable before the marks, and nobody knows where. */
  #mayHavePassed = false;
  /** The jobs that the last claim was told not to bring. */
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
   * Where a claim of these kinds begins: behind the marks if there are any; now and then at the start of one tier, which
   * is then looked through.
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

  /** Jobs that are no longer excluded may stand before the marks. */
  #noticeExclusions(exclude: readonly JobId[] = []): void {
    const excluded = new Set(exclude);
    for (const id of this.#excluded) if (!excluded.has(id)) this.#mayHavePassed = true;
    this.#excluded = excluded;
  }

  /** The places of each kind behind which a statement looks that begins at `begin`. */
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
   * Whether marks of these kinds had to be lowered, so that it is worth asking the statement what it finds behind them.
   * Otherwise it is not asked, since telling costs the server a little.
   */
  areLowered(kinds: readonly number[]): boolean {
    return this.#mayLook && (this.#ready.isLowered(kinds) || this.#due.isLowered(kinds));
  }

  /**
   * A statement that began at `begin` has walked past rows for `vainMs` milliseconds. With `isPaid` that counts against
   * the budget even though it began behind marks: they were lowered.
   */
  walked(kinds: readonly number[], begin: Begin, vainMs: number, isPaid = false): void {
    const now = this.#now();
    if (begin === "start" || isPaid) this.#budget.spend(vainMs, now);
    if (begin === "marks") return;
    for (const marks of [this.#ready, this.#due])
      marks.walked(begin === "start" ? null : begin, kinds, vainMs, now);
  }

  /** Learns from a claim where the next ones begin. */
  learn({ kinds, isCut, jobs, last, found, vainMs }: Learnt): void {
    const isDear = this.#budget.isDear(vainMs);
    const now = this.#now();
    // Of a kind that had room for more, everything that still waits was tried, and was locked by somebody.
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

  /** Scheduled jobs have become ready: the next promotion looks behind them. */
  promoted(promoted: readonly Promoted[]): void {
    const now = this.#now();
    for (const { kind, tier, firstMs, lastMs } of promoted) {
      const found = { last: beforeDue(lastMs), clearTo: beforeDue(firstMs) };
      this.#due.ended(kind, tier, found, false, now);
    }
  }

  /** A claim has ended, with all the statements that it took. */
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
    // Without a backlog the next claims look at everything, unless that took long: then the marks stay behind it all.
    if (!isCaughtUp || !hasLooked || this.#budget.isDear(vainMs)) return;
    this.#ready.forget();
    this.#due.forget();
  }

  /** A job is back at its old place, which the next claim must see; null: such jobs may be anywhere. */
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
