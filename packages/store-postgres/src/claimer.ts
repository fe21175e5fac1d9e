import { type ClaimRequest, type ClaimResult, type JobId, toUuid } from "@venturi/core";
import {
  type Answer,
  type ClaimInfo,
  countByKind,
  hasRoomLeft,
  inOrder,
  nothing,
  type Placed,
  type RawAnswer,
  readAnswer,
  readInfo,
  remainder,
  together,
  vainMs,
} from "./claim-answer.ts";
import { beforeDue, PlaceMap, readFound, type WalkFound } from "./claim-found.ts";
import type { Database, Row } from "./database.ts";
import type { Kinds } from "./kinds.ts";
import { type Begin, type Mark, Marks, type Tier, tiers } from "./marks.ts";
import type { Names } from "./names.ts";
import type { OldPlace } from "./old-place.ts";
import { type ClaimTerms, isStale, toClaimedJob, withBody } from "./row-mapping.ts";
import { claim, claimedBodies } from "./sql/claim.ts";
import { claimAll } from "./sql/claim-all.ts";
import { claimHinted } from "./sql/claim-hinted.ts";
import { mostLeaseMs } from "./sql/claim-terms.ts";
import { promote } from "./sql/promote.ts";
import type { Statement } from "./sql/statement.ts";
import { fewKinds } from "./sql/walk.ts";
import { WalkBudget } from "./walk-budget.ts";

/** Before every number that a row can have, also one that was written by hand. */
const firstSeq: Mark = [-9e18, -9e18, -9e18];
const firstDue: Mark = [
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

/**
 * Where a claim brings as many jobs as these, the next one begins behind its marks even if it took everything that
 * waited. A worker that keeps up with its producers takes everything again and again, and where a snapshot is held
 * open each walk from the start would pass all the rows that have ended since: they cannot be cleaned up.
 */
const manyJobs = 500;

/**
 * How long after a claim that looked at all kinds the next may look for the job alone that a notification named, in
 * milliseconds: whatever came without a notification is found then, however many come with one.
 */
const hintedMs = 1_000;

/**
 * Claims for one worker session. Usually one statement; two where scheduled jobs are known to be due, which are
 * promoted first; three where the claim itself found that out. A claim behind marks that came back short is made
 * once more without them, so that an empty answer is a true one; where such looks have become dear, only as often as
 * their budget allows, and the answer says that there may be more (`blocked`).
 *
 * While claims take everything that waits, a smaller statement is tried first, which does just that; where more waits
 * than it may take, the larger one follows, and is kept to until once more a claim has taken everything. And while all
 * that comes are single jobs that notifications name, each is looked up by its id.
 */
export class Claimer {
  readonly #database: Database;
  readonly #kinds: Kinds;
  readonly #claim: Statement;
  readonly #claimAll: Statement;
  readonly #claimHinted: Statement;
  readonly #bodies: Statement;
  readonly #promote: Statement;
  readonly #now: () => number;
  readonly #ready = new Marks();
  readonly #due = new Marks();
  readonly #budget: WalkBudget;
  /** What has been put back since the claim under way began, which may have been past it; null: none is under way. */
  #putBackMeanwhile: OldPlace[] | null = null;
  /** Whether the claim under way may walk past much: there is something left of its budget. */
  #mayLook = true;
  /** Something may be claimable before the marks, and nobody knows where. */
  #mayHavePassed = false;
  /** What the last claim was not to bring. */
  #excluded: ReadonlySet<JobId> = new Set();
  /** When a scheduled job is next due, on the monotonic clock, as far as the last claim knew. */
  #dueAt = Number.POSITIVE_INFINITY;
  /** The last claim took everything that waited. */
  #tookAll = false;
  /** When the last claim began that was not for a hint alone, on the monotonic clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The last claim came back short, though not of hundreds: there is no backlog. */
  #isCaughtUp = false;

  constructor(
    database: Database,
    kinds: Kinds,
    names: Names,
    now: () => number = () => performance.now(),
    budget: WalkBudget = new WalkBudget(),
  ) {
    this.#database = database;
    this.#kinds = kinds;
    this.#claim = claim(names);
    this.#claimAll = claimAll(names);
    this.#claimHinted = claimHinted(names);
    this.#bodies = claimedBodies(names);
    this.#promote = promote(names);
    this.#now = now;
    this.#budget = budget;
  }

  async claim(asked: ClaimRequest): Promise<ClaimResult> {
    const request = await this.#kinds.known(asked);
    if (request === null) return { jobs: [], waitMs: null, blocked: true };
    const putBack: OldPlace[] = [];
    this.#putBackMeanwhile = putBack;
    try {
      const hint = this.#usableHint(request);
      if (hint !== null) return await this.#claimNamed(request, hint);
      return await this.#claimAndLook(request);
    } catch (error) {
      // What it was to look for has not been looked for.
      this.#mayHavePassed = true;
      throw error;
    } finally {
      this.#putBackMeanwhile = null;
      for (const { kindId, tier, seq } of putBack) this.#ready.putBack(kindId, tier, seq);
    }
  }

  /** The job that a notification named, if nothing else can wait: all was taken, and nothing scheduled is due since. */
  #usableHint({ hint, exclude }: ClaimRequest): JobId | null {
    const now = this.#now();
    const isAlone = this.#tookAll && now < this.#dueAt && now - this.#lookedAt < hintedMs;
    return hint !== undefined && isAlone && !exclude?.includes(hint) ? hint : null;
  }

  async #claimNamed(request: ClaimRequest, hint: JobId): Promise<ClaimResult> {
    // Should it fail, the next claim looks at everything, whatever the reason was.
    this.#tookAll = false;
    const values = [...this.#basics(request), toUuid(hint)];
    const rows = await this.#withFreshBodies(
      await this.#database.run(this.#claimHinted, values, "claim jobs"),
    );
    const info = readInfo(rows[0]);
    if (info !== null) this.#database.sawIsolation(info.isolation);
    const jobs = rows.flatMap((row) => {
      const terms = info && this.#terms(request, info.clock_ms).get(row["kind_id"] as number);
      return terms ? [toClaimedJob(row, terms)] : [];
    });
    const blocked = info?.held !== false;
    this.#tookAll = !blocked;
    const waitMs = this.#dueAt - this.#now();
    return { jobs, waitMs: waitMs === Number.POSITIVE_INFINITY ? null : waitMs, blocked };
  }

  /** Claims, and looks from the start where that is due, or for what a claim behind marks has not brought. */
  async #claimAndLook(request: ClaimRequest): Promise<ClaimResult> {
    const now = this.#now();
    this.#lookedAt = now;
    this.#noticeExclusions(request.exclude);
    this.#mayLook = this.#budget.allows(now);
    const begin = this.#begin(request, now);
    let answer = await this.#promoteAndClaim(request, begin, this.#dueAt <= now);
    const isBusy = answer.jobs.length >= manyJobs;
    let hasLooked = begin === "start";
    const rest =
      hasLooked || answer.jobs.length >= request.limit ? null : remainder(request, answer.jobs);
    if (rest !== null) {
      hasLooked = this.#mayLook && !isBusy;
      // What lies before the marks waits for the next walk: until then this is no true answer.
      answer = hasLooked
        ? together(answer, await this.#promoteAndClaim(rest, "start", false))
        : { ...answer, held: true };
    }
    const isShort = answer.jobs.length < request.limit;
    this.#isCaughtUp = isShort && !isBusy;
    // There is nothing to begin behind, unless looking took long: then the marks are behind all that was looked at.
    if (this.#isCaughtUp && hasLooked && !this.#budget.isDear(answer.vainMs)) {
      this.#ready.forget();
      this.#due.forget();
    }
    const { jobs, waitMs, due, held } = answer;
    this.#tookAll = answer.isAll || hasRoomLeft(request, answer);
    this.#dueAt = due ? this.#now() : this.#now() + (waitMs ?? Number.POSITIVE_INFINITY);
    return {
      jobs: jobs.map(({ job }) => job),
      waitMs,
      blocked: held && isShort,
    };
  }

  /** A job that may be claimed again stands wherever it stood. */
  #noticeExclusions(exclude: readonly JobId[] = []): void {
    const excluded = new Set(exclude);
    for (const id of this.#excluded) if (!excluded.has(id)) this.#mayHavePassed = true;
    this.#excluded = excluded;
  }

  /** Where a claim begins: behind marks if there are any, but for one tier that is to be looked through now and then. */
  #begin(request: ClaimRequest, now: number): Begin {
    const mayHavePassed = this.#mayHavePassed;
    this.#mayHavePassed = false;
    if (this.#ready.isEmpty && this.#due.isEmpty) return "start";
    if (this.#mayLook && (this.#isCaughtUp || mayHavePassed)) return "start";
    if (mayHavePassed) for (const marks of [this.#ready, this.#due]) marks.walkSoon();
    const ids = this.#idsOf(request);
    return this.#ready.dueTier(ids, now) ?? this.#due.dueTier(ids, now) ?? "marks";
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

  /** Claims; what is due among the scheduled is promoted first, as is known beforehand or found out by the claim. */
  async #promoteAndClaim(request: ClaimRequest, begin: Begin, dueBefore: boolean): Promise<Answer> {
    if (!dueBefore) {
      const isForAll = this.#tookAll && begin === "start" && request.kinds.length <= fewKinds;
      const all = isForAll ? await this.#claimAllOnce(request) : null;
      const answer = all ?? (await this.#claimOnce(request, begin, false));
      if (!answer.due) return answer;
    }
    await this.#promoteDue(request, begin);
    return this.#claimOnce(request, begin, true);
  }

  /** Claims everything that waits; null: it is more than may be taken, and nothing was. */
  async #claimAllOnce(request: ClaimRequest): Promise<Answer | null> {
    // Should it fail, the next claim is the larger one, whatever the reason was.
    this.#tookAll = false;
    this.#marks(request, "start");
    const raw = readAnswer(
      await this.#database.run(
        this.#claimAll,
        [...this.#basics(request), (request.exclude ?? []).map(toUuid)],
        "claim jobs",
      ),
    );
    this.#walked(request, "start", raw);
    // Where something is due it is promoted first, and then the other statement claims.
    if (raw === null || (raw.info.fits !== true && !raw.info.due)) return null;
    // It says that it has taken all, but not of which kind what is held by others is.
    const isWhole = ({ due, held }: ClaimInfo) => !due && !held;
    return { ...(await this.#read(request, raw, isWhole)), isAll: true };
  }

  /** What both statements begin with. */
  #basics(request: ClaimRequest): unknown[] {
    return [
      request.worker,
      request.limit,
      this.#idsOf(request),
      request.kinds.map(({ limit }) => limit),
      request.kinds.map(({ leaseMs }) => leaseMs),
      request.kinds.map(({ backstop }) => backstop),
    ];
  }

  async #claimOnce(request: ClaimRequest, begin: Begin, ignoreDue: boolean): Promise<Answer> {
    const ids = this.#idsOf(request);
    const { ready, due } = this.#marks(request, begin);
    // Behind marks that are where they ought to be nobody wants to know, and it costs the server a little.
    const isLow = this.#mayLook && (this.#ready.isLowered(ids) || this.#due.isLowered(ids));
    const raw = readAnswer(
      await this.#database.run(
        this.#claim,
        [
          ...this.#basics(request),
          request.turn.counter,
          request.turn.ratio,
          ...byTier(ready),
          ...byTier(due),
          (request.exclude ?? []).map(toUuid),
          ignoreDue ? 1 : 0,
          begin !== "marks" || isLow ? 1 : 0,
        ],
        "claim jobs",
      ),
    );
    if (isLow && begin !== "start") this.#budget.spend(vainMs(raw), this.#now());
    this.#walked(request, begin, raw);
    // One that stopped at what is due has not looked for what is ready.
    return this.#read(request, raw, ({ due }) => ignoreDue || !due);
  }

  #marks(request: ClaimRequest, begin: Begin): { readonly ready: Mark[]; readonly due: Mark[] } {
    const ids = this.#idsOf(request);
    const start = { begin, mayBeLow: this.#mayLook, now: this.#now() };
    return {
      ready: ids.map((id) => this.#ready.starts(id, { ...start, start: firstSeq })),
      due: ids.map((id) => this.#due.starts(id, { ...start, start: firstDue })),
    };
  }

  #walked(request: ClaimRequest, begin: Begin, raw: RawAnswer | null): void {
    if (begin === "marks" || raw === null) return;
    const ids = this.#idsOf(request);
    const now = this.#now();
    for (const marks of [this.#ready, this.#due])
      marks.walked(begin === "start" ? null : begin, ids, vainMs(raw), now);
    if (begin === "start") this.#budget.spend(vainMs(raw), now);
  }

  /** Reads the bodies again that a merge had changed while the claim was looking. Rare. */
  async #withFreshBodies(rows: readonly Row[]): Promise<readonly Row[]> {
    const stale = rows.filter(isStale).map((row) => row["job_id"]);
    if (stale.length === 0) return rows;
    const bodies = await this.#database.run(
      this.#bodies,
      [stale],
      "read the jobs that were claimed",
    );
    const byId = new Map(bodies.map((body) => [body["job_id"], body]));
    return rows.map((row) => {
      const body = byId.get(row["job_id"]);
      return body === undefined ? row : withBody(row, body);
    });
  }

  /** Reads a claim's answer; `isWhole`: whether what it found is all that its kinds have. */
  async #read(
    request: ClaimRequest,
    raw: RawAnswer | null,
    isWhole: (info: ClaimInfo) => boolean,
  ): Promise<Answer> {
    if (raw === null) return nothing;
    const { info } = raw;
    const rows = await this.#withFreshBodies(raw.rows);
    this.#database.sawIsolation(info.isolation);
    const terms = this.#terms(request, info.clock_ms);
    const jobs: Placed[] = [];
    const last = new PlaceMap();
    for (const row of rows) {
      const kind = row["kind_id"] as number;
      const tier = row["priority"] as Tier;
      const seq = row["seq"] as number;
      last.raise(kind, tier, seq);
      // Only kinds that were asked for come back.
      const ofKind = terms.get(kind) as ClaimTerms;
      jobs.push({ tier, seq, job: toClaimedJob(row, ofKind) });
    }
    jobs.sort(inOrder);
    const found = isWhole(info) ? readFound(info) : null;
    const tookMs = vainMs(raw);
    this.#learn(request, { jobs, last, found, tookMs });
    const { wait_ms: waitMs, due, held } = info;
    return { jobs, waitMs, due, held, isAll: false, vainMs: tookMs };
  }

  /** What a claim has brought and found says where the next ones begin. */
  #learn(request: ClaimRequest, { jobs, last, found, tookMs }: Learnt): void {
    const isDear = this.#budget.isDear(tookMs);
    const now = this.#now();
    // Where there was room for more, what waits has been tried, and somebody has locked it.
    const tried = jobs.length < request.limit ? countByKind(jobs) : null;
    for (const { kind, limit } of request.kinds) {
      const id = this.#kinds.id(kind);
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

  /** By the kinds' numbers. */
  #terms(request: ClaimRequest, claimedMs: number): ReadonlyMap<number, ClaimTerms> {
    return new Map(
      request.kinds.map(({ kind, leaseMs }) => [
        this.#kinds.id(kind),
        { kind, leaseMs: Math.min(Math.max(leaseMs, 0), mostLeaseMs), claimedMs },
      ]),
    );
  }

  /** Promotes as many of each kind and tier as this claim could take, so that the claim sees what it would take. */
  async #promoteDue(request: ClaimRequest, begin: Begin): Promise<void> {
    // Those that are excluded come on top: they may stand before the others.
    const excluded = request.exclude?.length ?? 0;
    const ids = this.#idsOf(request);
    const rows = await this.#database.run(
      this.#promote,
      [
        ids,
        request.kinds.map(({ limit }) => Math.min(limit, request.limit) + excluded),
        ...byTier(this.#marks(request, begin).due),
      ],
      "promote scheduled jobs",
    );
    const now = this.#now();
    for (const row of rows) {
      const clearTo = beforeDue(row["first_ms"] as number);
      const last = beforeDue(row["last_ms"] as number);
      const tier = row["priority"] as Tier;
      this.#due.ended(row["kind_id"] as number, tier, { last, clearTo }, false, now);
    }
  }

  #idsOf({ kinds }: ClaimRequest): number[] {
    return kinds.map(({ kind }) => this.#kinds.id(kind));
  }
}

interface Learnt {
  readonly jobs: readonly Placed[];
  /** The last job that was brought of each kind and tier. */
  readonly last: PlaceMap;
  readonly found: WalkFound | null;
  readonly tookMs: number;
}

/** One array per tier, as the statements take them. */
function byTier(marks: readonly Mark[]): [number[], number[], number[]] {
  return [marks.map((mark) => mark[0]), marks.map((mark) => mark[1]), marks.map((mark) => mark[2])];
}
