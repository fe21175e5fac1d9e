import type { ClaimedJob, ClaimRequest } from "@venturi/core";
import type { ToldText } from "./claim-found.ts";
import type { Row } from "./database.ts";
import type { KnownKind, KnownRequest } from "./kinds.ts";

/**
 * What finding and locking a row takes, about, and looking for one of a kind, in milliseconds: what is left of a
 * walk's time was spent in vain.
 */
const perJobMs = 0.01;
const perKindMs = 0.01;

/** What a claim says once for all of its jobs: the column `info` of its first row. */
export interface ClaimInfo {
  /** The instant of the claim, in epoch milliseconds of the database clock. */
  readonly clock_ms: number;
  readonly isolation: string;
  /** Milliseconds until the next scheduled job is due; null: none. */
  readonly wait_ms: number | null;
  /** A scheduled job is due and has not been promoted. */
  readonly due: boolean;
  /** Something due could not be had, though there was room for it: another transaction holds its row. */
  readonly held: boolean;
  /** How long the walks took, in milliseconds. */
  readonly walk_ms: number;
  /** The last number that a row had got when they began; null: none. */
  readonly last_seq: number | null;
  /** How many kinds were looked at: not those that are paused, or have other numbers by now. */
  readonly kinds: number;
  /** Null: nobody wanted to know. */
  readonly found: ToldText | null;
  /** Of the statement that takes everything that waits: whether it all fits. */
  readonly fits?: boolean;
}

/** What a claim's statement answered with: a row for all, and one for each job. */
export interface RawAnswer {
  readonly info: ClaimInfo;
  readonly rows: readonly Row[];
}

/** A statement always answers with a row; null: something between here and the server has lost it. */
export function readAnswer(rows: readonly Row[]): RawAnswer | null {
  const info = readInfo(rows[0]);
  return info === null ? null : { info, rows: rows.slice(1) };
}

export function readInfo(row: Row | undefined): ClaimInfo | null {
  const text = row?.["info"];
  return typeof text === "string" ? (JSON.parse(text) as ClaimInfo) : null;
}

/** A claimed job and its place in the order. */
export interface Placed {
  readonly tier: number;
  readonly seq: number;
  readonly job: ClaimedJob;
}

export function inOrder(a: Placed, b: Placed): number {
  return a.tier - b.tier || a.seq - b.seq;
}

export interface Answer {
  readonly jobs: readonly Placed[];
  /** Milliseconds until the next scheduled job is due; null: none. */
  readonly waitMs: number | null;
  /** A scheduled job is due and has not been promoted. */
  readonly due: boolean;
  /** Something due could not be had, though there was room for it: another transaction holds its row. */
  readonly held: boolean;
  /** By the statement that takes everything that waits. */
  readonly isAll: boolean;
  /** How long the statement walked without finding a job, in milliseconds. */
  readonly vainMs: number;
}

/** Without any answer nothing is known, least of all that nothing waits. */
export const nothing: Answer = {
  jobs: [],
  waitMs: null,
  due: false,
  held: true,
  isAll: false,
  vainMs: 0,
};

/** How long a statement walked without finding a job, in milliseconds. */
export function vainMs(answer: RawAnswer | null): number {
  if (answer === null) return 0;
  const { info, rows } = answer;
  return Math.max(0, info.walk_ms - perJobMs * rows.length - perKindMs * info.kinds);
}

/** Whether more would have been taken of any kind, had there been more. Where others hold jobs, nobody knows. */
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

/** What a claim and one for the rest of its request brought, in one order. */
export function together(first: Answer, rest: Answer): Answer {
  const jobs = [...first.jobs, ...rest.jobs].sort(inOrder);
  const waits = [first.waitMs, rest.waitMs].filter((waitMs) => waitMs !== null);
  return { ...rest, jobs, waitMs: waits.length === 0 ? null : Math.min(...waits) };
}

/** What is left to ask for after a first answer; the rotation goes on behind the turns that it spent. */
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
