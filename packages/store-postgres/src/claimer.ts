import { type ClaimRequest, type ClaimResult, type JobId, toUuid } from "@venturi/core";
import {
  type Answer,
  type ClaimInfo,
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
import { PlaceMap, readFound } from "./claim-found.ts";
import { ClaimStarts } from "./claim-starts.ts";
import type { Database, Row } from "./database.ts";
import type { Kinds } from "./kinds.ts";
import type { Begin, Mark, Tier } from "./marks.ts";
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
import type { WalkBudget } from "./walk-budget.ts";

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
  readonly #starts: ClaimStarts;
  /** When a scheduled job is next due, on the monotonic clock, as far as the last claim knew. */
  #dueAt = Number.POSITIVE_INFINITY;
  /** The last claim took everything that waited. */
  #tookAll = false;
  /** When the last claim began that was not for a hint alone, on the monotonic clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    database: Database,
    kinds: Kinds,
    names: Names,
    now: () => number = () => performance.now(),
    budget?: WalkBudget,
  ) {
    this.#database = database;
    this.#kinds = kinds;
    this.#claim = claim(names);
    this.#claimAll = claimAll(names);
    this.#claimHinted = claimHinted(names);
    this.#bodies = claimedBodies(names);
    this.#promote = promote(names);
    this.#now = now;
    this.#starts = new ClaimStarts(now, budget);
  }

  async claim(asked: ClaimRequest): Promise<ClaimResult> {
    const request = await this.#kinds.known(asked);
    if (request === null) return { jobs: [], waitMs: null, blocked: true };
    this.#starts.claimBegins();
    try {
      const hint = this.#usableHint(request);
      if (hint !== null) return await this.#claimNamed(request, hint);
      return await this.#claimAndLook(request);
    } catch (error) {
      // What it was to look for has not been looked for.
      this.#starts.putBack(null);
      throw error;
    } finally {
      this.#starts.claimEnds();
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
    const begin = this.#starts.begin(this.#idsOf(request), request.exclude);
    let answer = await this.#promoteAndClaim(request, begin, this.#dueAt <= now);
    const isBusy = answer.jobs.length >= manyJobs;
    let hasLooked = begin === "start";
    const rest =
      hasLooked || answer.jobs.length >= request.limit ? null : remainder(request, answer.jobs);
    if (rest !== null) {
      hasLooked = this.#starts.mayLook && !isBusy;
      // What lies before the marks waits for the next walk: until then this is no true answer.
      answer = hasLooked
        ? together(answer, await this.#promoteAndClaim(rest, "start", false))
        : { ...answer, held: true };
    }
    const isShort = answer.jobs.length < request.limit;
    this.#starts.cameTo({ isCaughtUp: isShort && !isBusy, hasLooked, vainMs: answer.vainMs });
    const { jobs, waitMs, due, held } = answer;
    this.#tookAll = answer.isAll || hasRoomLeft(request, answer);
    this.#dueAt = due ? this.#now() : this.#now() + (waitMs ?? Number.POSITIVE_INFINITY);
    return {
      jobs: jobs.map(({ job }) => job),
      waitMs,
      blocked: held && isShort,
    };
  }

  /** A row is pending again at its old place, which the next claim is not to pass over; null: any may be. */
  putBack(place: OldPlace | null): void {
    this.#starts.putBack(place);
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
    // It is sent no places, but what walks from the start is noted where places are asked for.
    this.#starts.places(this.#idsOf(request), "start");
    const raw = readAnswer(
      await this.#database.run(
        this.#claimAll,
        [...this.#basics(request), (request.exclude ?? []).map(toUuid)],
        "claim jobs",
      ),
    );
    if (raw !== null) this.#starts.walked(this.#idsOf(request), "start", vainMs(raw));
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
    const { ready, due } = this.#starts.places(ids, begin);
    const areLowered = this.#starts.areLowered(ids);
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
          begin !== "marks" || areLowered ? 1 : 0,
        ],
        "claim jobs",
      ),
    );
    if (raw !== null) this.#starts.walked(ids, begin, vainMs(raw), areLowered);
    // One that stopped at what is due has not looked for what is ready.
    return this.#read(request, raw, ({ due }) => ignoreDue || !due);
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
    this.#starts.learn({
      kinds: request.kinds.map(({ kind, limit }) => ({ id: this.#kinds.id(kind), kind, limit })),
      isCut: jobs.length >= request.limit,
      jobs,
      last,
      found,
      vainMs: tookMs,
    });
    const { wait_ms: waitMs, due, held } = info;
    return { jobs, waitMs, due, held, isAll: false, vainMs: tookMs };
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
        ...byTier(this.#starts.places(ids, begin).due),
      ],
      "promote scheduled jobs",
    );
    this.#starts.promoted(
      rows.map((row) => ({
        kind: row["kind_id"] as number,
        tier: row["priority"] as Tier,
        firstMs: row["first_ms"] as number,
        lastMs: row["last_ms"] as number,
      })),
    );
  }

  #idsOf({ kinds }: ClaimRequest): number[] {
    return kinds.map(({ kind }) => this.#kinds.id(kind));
  }
}

/** One array per tier, as the statements take them. */
function byTier(marks: readonly Mark[]): [number[], number[], number[]] {
  return [marks.map((mark) => mark[0]), marks.map((mark) => mark[1]), marks.map((mark) => mark[2])];
}
