import { type ClaimRequest, type ClaimResult, type JobId, toUuid } from "@venturi/core";
import {
  type Answer,
  countByKind,
  hasRoomLeft,
  inOrder,
  nothing,
  type Placed,
  remainder,
  together,
  vainMs,
} from "./claim-answer.ts";
import type { Database, Row } from "./database.ts";
import type { Kinds } from "./kinds.ts";
import { type Begin, type Mark, Marks, type Tier, type Walk } from "./marks.ts";
import type { Names } from "./names.ts";
import type { OldPlace } from "./old-place.ts";
import { type ClaimTerms, toClaimedJob } from "./row-mapping.ts";
import { claim, claimedBodies } from "./sql/claim.ts";
import { claimAll } from "./sql/claim-all.ts";
import { claimHinted } from "./sql/claim-hinted.ts";
import { mostLeaseMs } from "./sql/claim-terms.ts";
import { promote } from "./sql/promote.ts";
import type { Statement } from "./sql/statement.ts";
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
 * With more kinds than these the smaller statement, which looks up each of them among all, would be the slower one;
 * and so would be a claim that looks at each of them behind a mark of its own, rather than once at all that have none.
 */
const fewKinds = 100;

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
  /** Tiers of which the last promotion found something before its mark: there may be more. */
  readonly #dueBeforeMarks = new Set<Tier>();
  /** What has been put back since the claim under way began, which may have been past it; null: none is under way. */
  #putBackMeanwhile: OldPlace[] | null = null;
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

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    await this.#kinds.load(request.kinds.map(({ kind }) => kind));
    const putBack: OldPlace[] = [];
    this.#putBackMeanwhile = putBack;
    try {
      const hint = this.#usableHint(request);
      if (hint !== null) return await this.#claimNamed(request, hint);
      return await this.#claimAndLook(request);
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
    const jobs = rows.flatMap((row) => {
      this.#database.sawIsolation(row["isolation"] as string);
      const terms = this.#terms(request, row["clock_ms"] as number).get(row["kind_id"] as number);
      return terms === undefined ? [] : [toClaimedJob(row, terms)];
    });
    const blocked = rows[0]?.["held"] !== 0;
    this.#tookAll = !blocked;
    const waitMs = this.#dueAt - this.#now();
    return { jobs, waitMs: waitMs === Number.POSITIVE_INFINITY ? null : waitMs, blocked };
  }

  /** Claims, and looks from the start where that is due, or for what a claim behind marks has not brought. */
  async #claimAndLook(request: ClaimRequest): Promise<ClaimResult> {
    const now = this.#now();
    this.#lookedAt = now;
    const hasMarks = !(this.#ready.isEmpty && this.#due.isEmpty);
    const mayLook = this.#budget.allows(now);
    const begin = hasMarks && !(this.#isCaughtUp && mayLook) ? this.#next(now) : "start";
    if (begin === "start") this.#dueBeforeMarks.clear();
    else if (begin !== "marks") this.#dueBeforeMarks.delete(begin);
    let answer = await this.#promoteAndClaim(request, begin, this.#dueAt <= now);
    const isBusy = answer.jobs.length >= manyJobs;
    let hasLooked = begin === "start";
    const rest =
      hasLooked || answer.jobs.length >= request.limit ? null : remainder(request, answer.jobs);
    if (rest !== null) {
      hasLooked = mayLook && !isBusy;
      // What lies before the marks waits for the next walk: until then this is no true answer.
      answer = hasLooked
        ? together(answer, await this.#promoteAndClaim(rest, "start", false))
        : { ...answer, held: true };
    }
    const isShort = answer.jobs.length < request.limit;
    this.#isCaughtUp = isShort && !isBusy;
    if (this.#isCaughtUp && hasLooked) this.#lookedAtAll(request, answer);
    const { jobs, waitMs, due, held } = answer;
    this.#tookAll = answer.isAll || hasRoomLeft(request, answer);
    this.#dueAt = due ? this.#now() : this.#now() + (waitMs ?? Number.POSITIVE_INFINITY);
    return {
      jobs: jobs.map(({ job }) => job),
      waitMs,
      blocked: held && isShort,
    };
  }

  /** Where a claim begins that has marks: now and then one tier is looked through from its start. */
  #next(now: number): Begin {
    const [late] = this.#dueBeforeMarks;
    return this.#ready.dueTier(now) ?? late ?? "marks";
  }

  /**
   * A look from the start came back short, so that there is nothing to begin behind. Unless looking took long: then
   * the next claims begin behind all that had a place when this one began.
   */
  #lookedAtAll(request: ClaimRequest, answer: Answer): void {
    if (!this.#budget.isDear(answer.walked.vainMs)) {
      this.#ready.forget();
      this.#due.forget();
      return;
    }
    const { lastSeq, kinds, clockMs } = answer.walked;
    // What is paused, excluded or locked, or had no room, waits and was not brought.
    if (answer.held || answer.due || lastSeq === null || kinds < request.kinds.length) return;
    if ((request.exclude?.length ?? 0) > 0 || request.kinds.length > fewKinds) return;
    const taken = countByKind(answer.jobs);
    for (const { kind, limit } of request.kinds) {
      if ((taken.get(kind) ?? 0) >= limit) continue;
      const id = this.#kinds.id(kind);
      const due = Math.floor(clockMs) - 1;
      this.#ready.sawAll(id, [lastSeq, lastSeq, lastSeq]);
      this.#due.sawAll(id, [due, due, due]);
    }
  }

  /** A row is pending again at its old place, which the next claim is not to pass over. */
  putBack(place: OldPlace): void {
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
    const rows = await this.#database.run(
      this.#claimAll,
      [...this.#basics(request), (request.exclude ?? []).map(toUuid)],
      "claim jobs",
    );
    const [info] = rows;
    this.#walked("start", rows);
    // Where something is due it is promoted first, and then the other statement claims.
    if (info?.["fits"] !== 1 && info?.["due"] !== 1) return null;
    return { ...this.#read(request, await this.#withFreshBodies(rows), "start"), isAll: true };
  }

  /** What both statements begin with. */
  #basics(request: ClaimRequest): unknown[] {
    return [
      request.worker,
      request.limit,
      request.kinds.map(({ kind }) => this.#kinds.id(kind)),
      request.kinds.map(({ limit }) => limit),
      request.kinds.map(({ leaseMs }) => leaseMs),
      request.kinds.map(({ backstop }) => backstop),
    ];
  }

  async #claimOnce(request: ClaimRequest, begin: Begin, ignoreDue: boolean): Promise<Answer> {
    const ids = request.kinds.map(({ kind }) => this.#kinds.id(kind));
    const startedAt = this.#now();
    const marks = ids.map((id) => beginAt(begin, firstSeq, () => this.#ready.of(id, startedAt)));
    const due = ids.map((id) => beginAt(begin, firstDue, () => this.#due.of(id, startedAt)));
    const rows = await this.#database.run(
      this.#claim,
      [
        ...this.#basics(request),
        request.turn.counter,
        request.turn.ratio,
        ...tiers(marks),
        ...tiers(due),
        (request.exclude ?? []).map(toUuid),
        ignoreDue ? 1 : 0,
      ],
      "claim jobs",
    );
    this.#walked(begin, rows);
    return this.#read(request, await this.#withFreshBodies(rows), begin);
  }

  #walked(begin: Begin, rows: readonly Row[]): void {
    if (begin === "marks" || rows.length === 0) return;
    const now = this.#now();
    this.#ready.walked(begin === "start" ? null : begin, vainMs(rows), now);
    if (begin === "start") this.#budget.spend(vainMs(rows), now);
  }

  /** Reads the bodies again that a merge had changed while the claim was looking. Rare. */
  async #withFreshBodies(rows: readonly Row[]): Promise<readonly Row[]> {
    const stale = rows.filter((row) => row["stale"] === 1).map((row) => row["job_id"]);
    if (stale.length === 0) return rows;
    const bodies = await this.#database.run(
      this.#bodies,
      [stale],
      "read the jobs that were claimed",
    );
    const byId = new Map(bodies.map((body) => [body["job_id"], body]));
    return rows.map((row) => ({ ...row, ...byId.get(row["job_id"]) }));
  }

  #read(request: ClaimRequest, answer: readonly Row[], begin: Begin): Answer {
    const [info, ...rows] = answer;
    if (info === undefined) return nothing;
    this.#database.sawIsolation(info["isolation"] as string);
    const claimedMs = info["clock_ms"] as number;
    const terms = this.#terms(request, claimedMs);
    const walk = walkOf(begin, request);
    const jobs: Placed[] = [];
    for (const row of rows) {
      const kind = row["kind_id"] as number;
      const tier = row["priority"] as Tier;
      const seq = row["seq"] as number;
      this.#ready.saw(kind, tier, seq, walk);
      // Only kinds that were asked for come back.
      const ofKind = terms.get(kind) as ClaimTerms;
      jobs.push({ tier, seq, job: toClaimedJob(row, ofKind) });
    }
    jobs.sort(inOrder);
    const held = info["held"] === 1;
    if (!walk.isLeaving && hasRoomLeft(request, { jobs, held })) this.#ready.sawTheRest();
    return {
      jobs,
      waitMs: info["wait_ms"] as number | null,
      due: info["due"] === 1,
      held,
      isAll: false,
      walked: {
        vainMs: vainMs(answer),
        lastSeq: info["last_seq"] as number | null,
        kinds: info["kinds"] as number,
        clockMs: claimedMs,
      },
    };
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
    const ids = request.kinds.map(({ kind }) => this.#kinds.id(kind));
    const now = this.#now();
    const rows = await this.#database.run(
      this.#promote,
      [
        ids,
        request.kinds.map(({ limit }) => Math.min(limit, request.limit) + excluded),
        ...tiers(ids.map((id) => beginAt(begin, firstDue, () => this.#due.of(id, now)))),
      ],
      "promote scheduled jobs",
    );
    const walk = walkOf(begin, request);
    // Whole milliseconds: the mark must not lie behind a row of the same instant.
    const before = (ms: unknown) => Math.floor(ms as number) - 1;
    for (const row of rows) {
      const kind = row["kind_id"] as number;
      const tier = row["priority"] as Tier;
      if (this.#due.saw(kind, tier, before(row["first_ms"]), walk)) this.#dueBeforeMarks.add(tier);
      this.#due.saw(kind, tier, before(row["last_ms"]), walk);
    }
  }
}

function walkOf(begin: Begin, { exclude }: ClaimRequest): Walk {
  return { begin, isLeaving: (exclude?.length ?? 0) > 0 };
}

function beginAt(begin: Begin, start: Mark, marks: () => Mark): Mark {
  if (begin === "start") return start;
  const mark = marks();
  if (begin === "marks") return mark;
  const from: [number, number, number] = [...mark];
  from[begin] = start[begin];
  return from;
}

/** One array per tier, as the statements take them. */
function tiers(marks: readonly Mark[]): [number[], number[], number[]] {
  return [marks.map((mark) => mark[0]), marks.map((mark) => mark[1]), marks.map((mark) => mark[2])];
}
