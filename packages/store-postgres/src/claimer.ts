import {
  type ClaimedJob,
  type ClaimKind,
  type ClaimRequest,
  type ClaimResult,
  toUuid,
} from "@venturi/core";
import type { Database, Row } from "./database.ts";
import type { Kinds } from "./kinds.ts";
import { type Mark, Marks } from "./marks.ts";
import type { Names } from "./names.ts";
import { toClaimedJob } from "./row-mapping.ts";
import { claim } from "./sql/claim.ts";
import { promote } from "./sql/promote.ts";
import type { Statement } from "./sql/statement.ts";

const fromStart: Mark = [0, 0, 0];

/**
 * Claims for one worker session. Usually one statement; two where scheduled jobs are known to be due, which are
 * promoted first; three where the claim itself found that out. A claim behind marks that came back short is made
 * once more without them, so that an empty answer is a true one.
 */
export class Claimer {
  readonly #database: Database;
  readonly #kinds: Kinds;
  readonly #claim: Statement;
  readonly #promote: Statement;
  readonly #now: () => number;
  readonly #ready = new Marks();
  readonly #due = new Marks();
  /** When a scheduled job is next due, on the monotonic clock, as far as the last claim knew. */
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(
    database: Database,
    kinds: Kinds,
    names: Names,
    now: () => number = () => performance.now(),
  ) {
    this.#database = database;
    this.#kinds = kinds;
    this.#claim = claim(names);
    this.#promote = promote(names);
    this.#now = now;
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    await this.#kinds.load(request.kinds.map(({ kind }) => kind));
    let promoted = false;
    if (this.#dueAt <= this.#now()) {
      await this.#promoteDue(request);
      promoted = true;
    }
    const marked = !this.#ready.isFullWalkDue(this.#now());
    let answer = await this.#claimOnce(request, marked, promoted);
    if (!promoted && isDue(answer)) {
      await this.#promoteDue(request);
      promoted = true;
      answer = await this.#claimOnce(request, marked, promoted);
    }
    const jobs = [...answer.jobs];
    if (marked && jobs.length < request.limit) {
      this.#ready.forget();
      const rest = remainder(request, jobs);
      if (rest !== null) {
        answer = await this.#claimOnce(rest, false, promoted);
        jobs.push(...answer.jobs);
      }
    }
    const { waitMs } = answer;
    this.#dueAt = waitMs === null ? Number.POSITIVE_INFINITY : this.#now() + waitMs;
    const overdue = waitMs !== null && waitMs <= 0;
    return {
      jobs,
      waitMs: overdue ? null : waitMs,
      blocked: jobs.length < request.limit && (answer.held || overdue),
    };
  }

  async #claimOnce(request: ClaimRequest, marked: boolean, ignoreDue: boolean): Promise<Answer> {
    const ids = request.kinds.map(({ kind }) => this.#kinds.id(kind));
    const startedAt = this.#now();
    const marks = ids.map((id) => (marked ? this.#ready.of(id, startedAt) : fromStart));
    const due = ids.map((id) => (marked ? this.#due.of(id, startedAt) : fromStart));
    const rows = await this.#database.run(
      this.#claim,
      [
        request.worker,
        request.limit,
        ids,
        request.kinds.map(({ limit }) => limit),
        request.kinds.map(({ leaseMs }) => leaseMs),
        request.kinds.map(({ backstop }) => backstop),
        request.turn.counter,
        request.turn.ratio,
        ...tiers(marks),
        ...tiers(due),
        (request.exclude ?? []).map(toUuid),
        ignoreDue ? 1 : 0,
      ],
      "claim jobs",
    );
    if (!marked) this.#ready.walked(startedAt, this.#now());
    return this.#read(rows);
  }

  #read(rows: readonly Row[]): Answer {
    const [info] = rows;
    if (info === undefined) return { jobs: [], waitMs: null, held: false };
    this.#database.sawIsolation(info["isolation"] as string);
    const jobs: ClaimedJob[] = [];
    for (const row of rows) {
      if (row["job_id"] === null) continue;
      const kind = row["kind_id"] as number;
      this.#ready.saw(kind, row["priority"] as number, row["seq"] as number);
      jobs.push(toClaimedJob(row, this.#kinds.name(kind)));
    }
    return { jobs, waitMs: info["wait_ms"] as number | null, held: info["held"] === 1 };
  }

  /** Promotes as many of each kind and tier as this claim could take, so that the claim sees what it would take. */
  async #promoteDue(request: ClaimRequest): Promise<void> {
    const ids = request.kinds.map(({ kind }) => this.#kinds.id(kind));
    const startedAt = this.#now();
    const marked = !this.#due.isFullWalkDue(startedAt);
    const rows = await this.#database.run(
      this.#promote,
      [
        ids,
        request.kinds.map(({ limit }) => Math.min(limit, request.limit)),
        ...tiers(ids.map((id) => (marked ? this.#due.of(id, startedAt) : fromStart))),
      ],
      "promote scheduled jobs",
    );
    if (!marked) this.#due.walked(startedAt, this.#now());
    // Whole milliseconds: the mark must not lie behind a row of the same instant.
    for (const row of rows) {
      this.#due.saw(
        row["kind_id"] as number,
        row["priority"] as number,
        Math.floor(row["due_ms"] as number) - 1,
      );
    }
  }
}

interface Answer {
  readonly jobs: readonly ClaimedJob[];
  readonly waitMs: number | null;
  /** Something claimable was there, but another transaction holds its row. */
  readonly held: boolean;
}

function isDue({ waitMs }: Answer): boolean {
  return waitMs !== null && waitMs <= 0;
}

/** One array per tier, as the statements take them. */
function tiers(marks: readonly Mark[]): [number[], number[], number[]] {
  return [marks.map((mark) => mark[0]), marks.map((mark) => mark[1]), marks.map((mark) => mark[2])];
}

/** What is left to ask for after a first answer; the rotation goes on behind the turns that it spent. */
function remainder(request: ClaimRequest, jobs: readonly ClaimedJob[]): ClaimRequest | null {
  if (jobs.length === 0) return request;
  const taken = new Map<string, number>();
  for (const { kind } of jobs) taken.set(kind, (taken.get(kind) ?? 0) + 1);
  const kinds: ClaimKind[] = [];
  for (const kind of request.kinds) {
    const limit = kind.limit - (taken.get(kind.kind) ?? 0);
    if (limit > 0) kinds.push({ ...kind, limit });
  }
  if (kinds.length === 0) return null;
  const turn = { ...request.turn, counter: request.turn.counter + jobs.length };
  return { ...request, limit: request.limit - jobs.length, kinds, turn };
}
