import { type Priority, priorityFloor, priorityTier } from "./priority.ts";

/** Where the priority rotation stands: the next turns are `counter + 1`, `counter + 2`, and so on. */
export interface Turn {
  /** Turns spent so far: one for every job that a claim has brought back. */
  readonly counter: number;
  /** The `priorityRatio` of the worker; null: strict priority. */
  readonly ratio: number | null;
}

/** How one registered kind stands before a claim. */
export interface KindLoad {
  readonly kind: string;
  /** Most handlers of the kind at once; null: only `concurrency` bounds it. */
  readonly cap: number | null;
  /** Slots that jobs of the kind take now, including handlers that go on after their claim was lost. */
  readonly taken: number;
}

/** What to ask the store for. */
export interface ClaimPlan {
  readonly limit: number;
  readonly kinds: readonly { readonly kind: string; readonly limit: number }[];
  readonly turn: Turn;
}

/**
 * Decides what to claim: at most `free` jobs, and of each kind no more than its cap leaves room for. Null when there is
 * nothing to claim.
 */
export function planClaim(input: {
  readonly free: number;
  readonly kinds: readonly KindLoad[];
  readonly turn: Turn;
}): ClaimPlan | null {
  const { free, turn } = input;
  if (free < 1) return null;
  const kinds: { kind: string; limit: number }[] = [];
  let total = 0;
  for (const { kind, cap, taken } of input.kinds) {
    const limit = cap === null ? free : Math.min(free, cap - taken);
    if (limit < 1) continue;
    kinds.push({ kind, limit });
    total += limit;
  }
  if (kinds.length === 0) return null;
  return { limit: Math.min(free, total), kinds, turn };
}

/** A due job as the rotation sees it. */
export interface WaitingJob {
  readonly kind: string;
  /** 0 high, 1 normal, 2 low. */
  readonly tier: number;
}

/**
 * The jobs that a plan takes from those that wait, turn by turn. A turn with floor f takes the first job of the tiers f to
 * 2; if they hold none, the first of the tiers above. `waiting` is in arrival order; the result are indexes into it, in the
 * order in which they are taken. Every store's claim is tested against this definition.
 */
export function takeTurns(plan: ClaimPlan, waiting: readonly WaitingJob[]): number[] {
  const left = new Map(plan.kinds.map(({ kind, limit }) => [kind, limit]));
  const tiers: number[][] = [[], [], []];
  for (const [index, job] of waiting.entries()) tiers[job.tier]?.push(index);
  const heads = [0, 0, 0];
  const taken: number[] = [];
  const takeFrom = (tier: number): boolean => {
    const line = tiers[tier] ?? [];
    for (let head = heads[tier] ?? 0; head < line.length; head += 1) {
      heads[tier] = head + 1;
      const index = line[head] as number;
      const kind = (waiting[index] as WaitingJob).kind;
      const room = left.get(kind) ?? 0;
      // A kind without room stays without room for the rest of the plan, so its job can be passed for good.
      if (room < 1) continue;
      left.set(kind, room - 1);
      taken.push(index);
      return true;
    }
    return false;
  };
  for (let turn = 1; turn <= plan.limit; turn += 1) {
    const floor = priorityFloor(plan.turn.counter + turn, plan.turn.ratio);
    if (!tierOrder[floor].some(takeFrom)) break;
  }
  return taken;
}

/**
 * The jobs that a claim brought (by priority, then arrival), in the order in which its turns took them. So a job of a lower
 * priority waits behind no more urgent ones than the rotation says, however many jobs a claim brings at once.
 */
export function inTurns<T extends { readonly kind: string; readonly priority: Priority }>(
  turn: Turn,
  jobs: readonly T[],
): readonly T[] {
  if (turn.ratio === null || jobs[0]?.priority === jobs.at(-1)?.priority) return jobs;
  const kinds = [...new Set(jobs.map(({ kind }) => kind))];
  const limit = jobs.length;
  const plan = { limit, kinds: kinds.map((kind) => ({ kind, limit })), turn };
  const waiting = jobs.map(({ kind, priority }) => ({ kind, tier: priorityTier(priority) }));
  return takeTurns(plan, waiting).map((index) => jobs[index] as T);
}

/** For a floor, the tiers in the order a turn tries them. */
const tierOrder = { 0: [0, 1, 2], 1: [1, 2, 0], 2: [2, 0, 1] } as const;
