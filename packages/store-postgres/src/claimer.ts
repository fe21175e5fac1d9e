import type { ClaimRequest, ClaimResult, JobId } from "@venturi/core";
import {
  type Answer,
  type ClaimInfo,
  hasRoomLeft,
  nothing,
  type RawAnswer,
  remainder,
  together,
  vainMs,
} from "./claim-answer.ts";
import { readFound } from "./claim-found.ts";
import { ClaimStarts } from "./claim-starts.ts";
import { ClaimStatements, kindIds } from "./claim-statements.ts";
import type { Database } from "./database.ts";
import type { Kinds, KnownRequest } from "./kinds.ts";
import type { Begin } from "./marks.ts";
import type { Names } from "./names.ts";
import type { OldPlace } from "./old-place.ts";
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
  readonly #kinds: Kinds;
  readonly #statements: ClaimStatements;
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
    this.#kinds = kinds;
    this.#statements = new ClaimStatements(database, names);
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

  async #claimNamed(request: KnownRequest, hint: JobId): Promise<ClaimResult> {
    // Should it fail, the next claim looks at everything, whatever the reason was.
    this.#tookAll = false;
    const { info, jobs } = await this.#statements.claimNamed(request, hint);
    const blocked = info?.held !== false;
    this.#tookAll = !blocked;
    const waitMs = this.#dueAt - this.#now();
    return { jobs, waitMs: waitMs === Number.POSITIVE_INFINITY ? null : waitMs, blocked };
  }

  /** Claims, and looks from the start where that is due, or for what a claim behind marks has not brought. */
  async #claimAndLook(request: KnownRequest): Promise<ClaimResult> {
    const now = this.#now();
    this.#lookedAt = now;
    const begin = this.#starts.begin(kindIds(request), request.exclude);
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
  async #promoteAndClaim(request: KnownRequest, begin: Begin, dueBefore: boolean): Promise<Answer> {
    if (!dueBefore) {
      const isForAll = this.#tookAll && begin === "start" && request.kinds.length <= fewKinds;
      const all = isForAll ? await this.#claimAllOnce(request) : null;
      const answer = all ?? (await this.#claimOnce(request, begin, false));
      if (!answer.due) return answer;
    }
    const { due } = this.#starts.places(kindIds(request), begin);
    this.#starts.promoted(await this.#statements.promote(request, due));
    return this.#claimOnce(request, begin, true);
  }

  /** Claims everything that waits; null: it is more than may be taken, and nothing was. */
  async #claimAllOnce(request: KnownRequest): Promise<Answer | null> {
    // Should it fail, the next claim is the larger one, whatever the reason was.
    this.#tookAll = false;
    const ids = kindIds(request);
    // It is sent no places, but what walks from the start is noted where places are asked for.
    this.#starts.places(ids, "start");
    const raw = await this.#statements.claimAll(request);
    if (raw !== null) this.#starts.walked(ids, "start", vainMs(raw));
    // Where something is due it is promoted first, and then the other statement claims.
    if (raw === null || (raw.info.fits !== true && !raw.info.due)) return null;
    // It says that it has taken all, but not of which kind what is held by others is.
    const isWhole = ({ due, held }: ClaimInfo) => !due && !held;
    const answer = await this.#learn(request, raw, isWhole);
    // Of a kind that was missed it has taken nothing.
    return { ...answer, isAll: answer.held === raw.info.held };
  }

  async #claimOnce(request: KnownRequest, begin: Begin, ignoreDue: boolean): Promise<Answer> {
    const ids = kindIds(request);
    const places = this.#starts.places(ids, begin);
    const areLowered = this.#starts.areLowered(ids);
    const raw = await this.#statements.claim(request, {
      ...places,
      ignoreDue,
      tells: begin !== "marks" || areLowered,
    });
    if (raw === null) return nothing;
    this.#starts.walked(ids, begin, vainMs(raw), areLowered);
    // One that stopped at what is due has not looked for what is ready.
    return this.#learn(request, raw, ({ due }) => ignoreDue || !due);
  }

  /** Reads an answer, and where to begin next. `isWhole`: whether what it found is all that its kinds have. */
  async #learn(
    request: KnownRequest,
    raw: RawAnswer,
    isWhole: (info: ClaimInfo) => boolean,
  ): Promise<Answer> {
    const { info } = raw;
    const { jobs, last } = await this.#statements.read(request, raw);
    const tookMs = vainMs(raw);
    this.#starts.learn({
      kinds: request.kinds,
      isCut: jobs.length >= request.limit,
      jobs,
      last,
      found: isWhole(info) ? readFound(info) : null,
      vainMs: tookMs,
    });
    const { wait_ms: waitMs, due } = info;
    // A kind that was not found was not looked at: that is no true answer.
    const isMissed = info.kinds < request.kinds.length && (await this.#kinds.readAnew(request));
    return { jobs, waitMs, due, held: info.held || isMissed, isAll: false, vainMs: tookMs };
  }
}
