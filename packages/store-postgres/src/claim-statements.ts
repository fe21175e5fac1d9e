import { type ClaimedJob, type JobId, toUuid } from "@venturi/core";
import {
  type ClaimInfo,
  inOrder,
  type Placed,
  type RawAnswer,
  readAnswer,
  readInfo,
} from "./claim-answer.ts";
import { PlaceMap } from "./claim-found.ts";
import type { Promoted } from "./claim-starts.ts";
import type { Database, Row } from "./database.ts";
import type { KnownRequest } from "./kinds.ts";
import type { Mark, Tier } from "./marks.ts";
import type { Names } from "./names.ts";
import { type ClaimTerms, isStale, toClaimedJob, withBody } from "./row-mapping.ts";
import { claim, claimedBodies } from "./sql/claim.ts";
import { claimAll } from "./sql/claim-all.ts";
import { claimHinted } from "./sql/claim-hinted.ts";
import { mostLeaseMs } from "./sql/claim-terms.ts";
import { promote } from "./sql/promote.ts";
import type { Statement } from "./sql/statement.ts";

/** Where a claim looks, and how. */
export interface ClaimPlaces {
  /** For each kind, the places behind which it looks: for ready jobs (a `seq`), and for scheduled ones (epoch milliseconds). */
  readonly ready: readonly Mark[];
  readonly due: readonly Mark[];
  /** Whether it claims although a scheduled job is due. */
  readonly ignoreDue: boolean;
  /** Whether it tells what its walks have found even if they were cheap. */
  readonly tells: boolean;
}

/** The jobs of an answer, in order, and the last `seq` among them of each kind and tier. */
export interface Brought {
  readonly jobs: readonly Placed[];
  readonly last: PlaceMap;
}

/** The statements that claim: what each is sent, and how its answer is read. The claimer decides which of them to send. */
export class ClaimStatements {
  readonly #database: Database;
  readonly #claim: Statement;
  readonly #claimAll: Statement;
  readonly #claimHinted: Statement;
  readonly #bodies: Statement;
  readonly #promote: Statement;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#claim = claim(names);
    this.#claimAll = claimAll(names);
    this.#claimHinted = claimHinted(names);
    this.#bodies = claimedBodies(names);
    this.#promote = promote(names);
  }

  /** Claims what waits behind the places, in turns. */
  async claim(
    request: KnownRequest,
    { ready, due, ignoreDue, tells }: ClaimPlaces,
  ): Promise<RawAnswer | null> {
    const values = [
      ...this.#basics(request),
      request.turn.counter,
      request.turn.ratio,
      ...byTier(ready),
      ...byTier(due),
      (request.exclude ?? []).map(toUuid),
      ignoreDue ? 1 : 0,
      tells ? 1 : 0,
      kindNames(request),
    ];
    return readAnswer(await this.#database.run(this.#claim, values, "claim jobs"));
  }

  /** Claims everything that waits, or nothing where it does not fit. */
  async claimAll(request: KnownRequest): Promise<RawAnswer | null> {
    const values = [
      ...this.#basics(request),
      (request.exclude ?? []).map(toUuid),
      kindNames(request),
    ];
    return readAnswer(await this.#database.run(this.#claimAll, values, "claim jobs"));
  }

  /** Claims the job that a notification named. */
  async claimNamed(
    request: KnownRequest,
    id: JobId,
  ): Promise<{ readonly info: ClaimInfo | null; readonly jobs: readonly ClaimedJob[] }> {
    const values = [...this.#basics(request), toUuid(id), kindNames(request)];
    const [row] = await this.#withFreshBodies(
      await this.#database.run(this.#claimHinted, values, "claim jobs"),
    );
    const info = readInfo(row);
    if (row === undefined || info === null) return { info, jobs: [] };
    this.#database.sawIsolation(info.isolation);
    // The row has no kind where it has no job.
    const terms = this.#terms(request, info.clock_ms).get(row["kind_id"] as number);
    return { info, jobs: terms === undefined ? [] : [toClaimedJob(row, terms)] };
  }

  /** The jobs of an answer of `claim` or `claimAll`. */
  async read(request: KnownRequest, { info, rows }: RawAnswer): Promise<Brought> {
    const fresh = await this.#withFreshBodies(rows);
    this.#database.sawIsolation(info.isolation);
    const terms = this.#terms(request, info.clock_ms);
    const jobs: Placed[] = [];
    const last = new PlaceMap();
    for (const row of fresh) {
      const kind = row["kind_id"] as number;
      const tier = row["priority"] as Tier;
      const seq = row["seq"] as number;
      last.raise(kind, tier, seq);
      // Only kinds that were asked for come back.
      const ofKind = terms.get(kind) as ClaimTerms;
      jobs.push({ tier, seq, job: toClaimedJob(row, ofKind) });
    }
    return { jobs: jobs.sort(inOrder), last };
  }

  /** Promotes due scheduled jobs: of each kind and tier as many as this claim could take. */
  async promote(request: KnownRequest, due: readonly Mark[]): Promise<Promoted[]> {
    // Excluded jobs come on top, since they may stand before the others.
    const excluded = request.exclude?.length ?? 0;
    const values = [
      kindIds(request),
      request.kinds.map(({ limit }) => Math.min(limit, request.limit) + excluded),
      ...byTier(due),
    ];
    const rows = await this.#database.run(this.#promote, values, "promote scheduled jobs");
    return rows.map((row) => ({
      kind: row["kind_id"] as number,
      tier: row["priority"] as Tier,
      firstMs: row["first_ms"] as number,
      lastMs: row["last_ms"] as number,
    }));
  }

  /** The parameters that all claiming statements begin with. */
  #basics(request: KnownRequest): unknown[] {
    return [
      request.worker,
      request.limit,
      kindIds(request),
      request.kinds.map(({ limit }) => limit),
      request.kinds.map(({ leaseMs }) => leaseMs),
      request.kinds.map(({ backstop }) => backstop),
    ];
  }

  /** By the kinds' numbers. */
  #terms(request: KnownRequest, claimedMs: number): ReadonlyMap<number, ClaimTerms> {
    return new Map(
      request.kinds.map(({ id, kind, leaseMs }) => [
        id,
        { kind, leaseMs: Math.min(Math.max(leaseMs, 0), mostLeaseMs), claimedMs },
      ]),
    );
  }

  /** Reads bodies again that a merge changed while the claim was looking. That is rare. */
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
}

/** The numbers of a claim's kinds, in order. */
export function kindIds({ kinds }: KnownRequest): number[] {
  return kinds.map(({ id }) => id);
}

function kindNames({ kinds }: KnownRequest): string[] {
  return kinds.map(({ kind }) => kind);
}

/** The marks of all kinds as one array for each tier, as the statements take them. */
function byTier(marks: readonly Mark[]): [number[], number[], number[]] {
  return [marks.map((mark) => mark[0]), marks.map((mark) => mark[1]), marks.map((mark) => mark[2])];
}
