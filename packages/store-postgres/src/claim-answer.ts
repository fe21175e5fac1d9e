import type { ClaimedJob, ClaimRequest } from "@venturi/core";
import type { ToldText } from "./claim-found.ts";
import type { Row } from "./database.ts";
import type { KnownKind, KnownRequest } from "./kinds.ts";

/**
 * About how long it takes to find and lock a row, and to look for one of a kind, in milliseconds. The rest of a walk's
 * time was spent on rows that were not claimed.
 */
const perJobMs = 0.01;
const perKindMs = 0.01;

/** What a claim's answer says about all of its jobs together: the column `info` of its first row. */
export interface ClaimInfo {
  /** The instant of the claim, in epoch milliseconds of the database clock. */
  readonly clock_ms: number;
  readonly isolation: string;
  /** Milliseconds until the next scheduled job is due; null: none. */
  readonly wait_ms: number | null;
  /** A scheduled job is due and has not been promoted. */
  readonly due: boolean;
  /** A due job could not be claimed although there was room for it: another transaction holds its row. */
  readonly held: boolean;
  /** How long the walks took, in milliseconds. */
  readonly walk_ms: number;
  /** The highest `seq` that a row had got when the walks began; null: none. */
  readonly last_seq: number | null;
  /** How many kinds were looked at; paused kinds, and kinds whose number has changed, are not. */
  readonly kinds: number;
  /** Null: the claim was not asked to tell. */
  readonly found: ToldText | null;
  /** Only of the statement that claims everything that waits (`claimAll`): whether all of it fits. */
  readonly fits?: boolean;
}

/** The answer of a claim's statement: what holds for all jobs, and a row for each job. */
export interface RawAnswer {
  readonly info: ClaimInfo;
  readonly rows: readonly Row[];
}

/** Splits the rows of an answer. A statement always answers with a row; null: something on the way has lost it. */
export function readAnswer(rows: readonly Row[]): RawAnswer | null {
  const info = readInfo(rows[0]);
  return info === null ? null : { info, rows: rows.slice(1) };
}

export function readInfo(row: Row | undefined): ClaimInfo | null {
  const text = row?.["info"];
  return typeof text === "string" ? (JSON.parse(text) as ClaimInfo) : null;
}

/** A claimed job and its place in the order of a claim: by tier, then by `seq`. */
export interface Placed {
  readonly tier: number;
  readonly seq: number;
  readonly job: ClaimedJob;
}

export function inOrder(a: Placed, b: Placed): number {
  return a.tier - b.tier || a.seq - b.seq;
}

/** What one claim, or several in a row for one request, came to. */
export interface Answer {
  readonly jobs: readonly Placed[];
  /** Milliseconds until the next scheduled job is due; null: none. */
  readonly waitMs: number | null;
  /** A scheduled job is due and has not been promoted. */
  readonly due: boolean;
  /** A due job could not be claimed although there was room for it: another transaction holds its row. */
  readonly held: boolean;
  /** The statement that claims everything that waits (`claimAll`) has done so. */
  readonly isAll: boolean;
  /** How long the statement walked past rows that were not claimed, in milliseconds. */
  readonly vainMs: number;
}

/** Where the answer was lost: nothing is known, so `held` says that jobs may be waiting. */
export const nothing: Answer = {
  jobs: [],
  waitMs: null,
  due: false,
  held: true,
  isAll: false,
  vainMs: 0,
};

/** How long a statement walked past rows that were not claimed, in milliseconds. */
export function vainMs(answer: RawAnswer | null): number {
  if (answer === null) return 0;
  const { info, rows } = answer;
  return Math.max(0, info.walk_ms - perJobMs * rows.length - perKindMs * info.kinds);
}

/** Whether every kind had room for more jobs than the claim found, so that none is left waiting. False where others hold jobs. */
export function hasRoomLeft(
  request: ClaimRequest,
  { jobs, held }: Pick<Answer, "jobs" | "held">,
): boolean {
  if (held || jobs.length >= request.limit) return false;
  const taken = countByKind(jobs);
  return request.kinds.every(({ kind, limit }) => (taken.get(kind) ?? 0) < limit);
}

export function countByKind(jobs: readonly Placed[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { job } of jobs) counts.set(job.kind, (counts.get(job.kind) ?? 0) + 1);
  return counts;
}

/** Joins the answer of a claim and that of a second one for the rest of its request. */
export function together(first: Answer, rest: Answer): Answer {
  const jobs = [...first.jobs, ...rest.jobs].sort(inOrder);
  const waits = [first.waitMs, rest.waitMs].filter((waitMs) => waitMs !== null);
  return { ...rest, jobs, waitMs: waits.length === 0 ? null : Math.min(...waits) };
}

/** What is left to ask for after a first answer, null for nothing. The rotation goes on after the turns already spent. */
export function remainder(request: KnownRequest, jobs: readonly Placed[]): KnownRequest | null {
  if (jobs.length === 0) return request;
  const taken = countByKind(jobs);
  const kinds: KnownKind[] = [];
  for (const kind of request.kinds) {
    const limit = kind.limit - (taken.get(kind.kind) ?? 0);
    if (limit > 0) kinds.push({ ...kind, limit });
  }
  if (kinds.length === 0) return null;
  const turn = { ...request.turn, counter: request.turn.counter + jobs.length };
  return { ...request, limit: request.limit - jobs.length, kinds, turn };
}
