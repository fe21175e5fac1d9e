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
 * After a claim of this many jobs the next one begins behind the marks, even if the claim took everything that waited. A
 * worker that keeps up with its producers takes everything again and again; where somebody holds a snapshot open, each
 * walk from the start would pass all the rows that have ended since, which cannot be cleaned up.
 */
const manyJobs = 500;

/**
 * For how long after a claim that looked at everything claims may look only for the job that a notification named, in
 * milliseconds. So what came without a notification is found after that time at the latest.
 */
const hintedMs = 1_000;

/**
 * Claims for one worker session. A claim is usually one statement. It is two where scheduled jobs are known to be due,
 * since they are promoted first; and three where the claim itself finds that out.
 *
 * There are three statements that claim:
 *
 * - `claim` takes what waits by the turns of the rotation. It may begin behind marks. If it then brings fewer jobs than
 *   its limit, it is made once more from the start, so that an empty answer is a true one. Where such looks have become
 *   slow, they are made only as often as their budget allows; until then the answer is `blocked`: there may be more.
 * - `claimAll` is smaller and takes everything that waits. It is tried first while claims take everything. If more waits
 *   than it may take, `claim` follows, and is used until a claim has taken everything again.
 * - `claimNamed` looks up one job by its id, while all that comes are single jobs that notifications name.
 */
export class Claimer {
  readonly #kinds: Kinds;
  readonly #statements: ClaimStatements;
  readonly #now: () => number;
  readonly #starts: ClaimStarts;
  /** When the next scheduled job is due, on the monotonic clock, as the last claim knew. */
  #dueAt = Number.POSITIVE_INFINITY;
  /** Whether the last claim took everything that waited. */
  #tookAll = false;
  /** When the last claim began that looked for more than a hint. */
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
      // It may have failed before it looked at all.
      this.#starts.putBack(null);
      throw error;
    } finally {
      this.#starts.claimEnds();
    }
  }

  /** The job that a notification named, if nothing else can be waiting. */
  #usableHint({ hint, exclude }: ClaimRequest): JobId | null {
    const now = this.#now();
    const isAlone = this.#tookAll && now < this.#dueAt && now - this.#lookedAt < hintedMs;
    return hint !== undefined && isAlone && !exclude?.includes(hint) ? hint : null;
  }

  async #claimNamed(request: KnownRequest, hint: JobId): Promise<ClaimResult> {
    // If it fails, for whatever reason, the next claim looks at everything.
    this.#tookAll = false;
    const { info, jobs } = await this.#statements.claimNamed(request, hint);
    const blocked = info?.held !== false;
    this.#tookAll = !blocked;
    const waitMs = this.#dueAt - this.#now();
    return { jobs, waitMs: waitMs === Number.POSITIVE_INFINITY ? null : waitMs, blocked };
  }

  /** Claims; looks from the start too, if it began behind marks and brought too little. */
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
      // What lies before the marks has not been looked at, so there may be more: `held` makes the result `blocked`.
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

  /** A job is back at its old place, which the next claim must see; null: such jobs may be anywhere. */
  putBack(place: OldPlace | null): void {
    this.#starts.putBack(place);
  }

  /** Promotes what is due, and claims. */
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

  /** Claims everything that waits; null: that was too much, so nothing was claimed. */
  async #claimAllOnce(request: KnownRequest): Promise<Answer | null> {
    // If it fails, for whatever reason, the next claim is the larger one.
    this.#tookAll = false;
    const ids = kindIds(request);
    // The statement takes no places; asking for them notes that this walk begins at the start.
    this.#starts.places(ids, "start");
    const raw = await this.#statements.claimAll(request);
    if (raw !== null) this.#starts.walked(ids, "start", vainMs(raw));
    // Where a scheduled job is due, it is promoted first, and then the other statement claims.
    if (raw === null || (raw.info.fits !== true && !raw.info.due)) return null;
    // It does not say of which kinds the jobs are that others hold.
    const isWhole = ({ due, held }: ClaimInfo) => !due && !held;
    const answer = await this.#learn(request, raw, isWhole);
    // If a kind was missed, it has not taken everything.
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
    // A claim that stopped because a scheduled job is due has not looked for ready ones.
    return this.#learn(request, raw, ({ due }) => ignoreDue || !due);
  }

  /** Reads an answer. `isWhole`: its walks looked at everything. */
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
    // A kind whose number has changed was not looked at, so there may be more.
    const isMissed = info.kinds < request.kinds.length && (await this.#kinds.readAnew(request));
    return { jobs, waitMs, due, held: info.held || isMissed, isAll: false, vainMs: tookMs };
  }
}
