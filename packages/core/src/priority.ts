import { invalidArgument, show } from "./errors.ts";

/**
 * How urgent a job is. Due `high` jobs are claimed before `normal` ones, and these before `low` ones. Now and then a turn
 * goes to the lower priorities first, so that a flood of urgent jobs does not starve them: see `priorityRatio` of a worker.
 */
export type Priority = "high" | "normal" | "low";

/** A priority as stores hold it: 0 high, 1 normal, 2 low. */
export type PriorityTier = 0 | 1 | 2;

/** All priorities, by tier. */
export const priorities: readonly Priority[] = Object.freeze(["high", "normal", "low"]);

/** Whether a value is a priority. */
export function isPriority(value: unknown): value is Priority {
  return value === "normal" || value === "high" || value === "low";
}

/** A value as a priority; throws `invalid-argument` naming `argument`. */
export function toPriority(value: unknown, argument: string): Priority {
  if (isPriority(value)) return value;
  const what = `is not a priority (got ${show(value)})`;
  throw invalidArgument(argument, what, 'use "high", "normal" or "low"');
}

/** The tier of a priority. */
export function priorityTier(priority: Priority): PriorityTier {
  return priority === "normal" ? 1 : priority === "high" ? 0 : 2;
}

/** The priority of a tier; throws `invalid-argument` for a number that is none. */
export function priorityOfTier(tier: number): Priority {
  const priority = priorities[tier];
  if (priority === undefined) {
    throw invalidArgument("tier", `is not a priority tier (got ${tier})`, "use 0, 1 or 2");
  }
  return priority;
}

/**
 * The tier a claim's turn starts at, so that a flood of urgent jobs does not starve the rest: 2 (low only) on every
 * `ratio²`-th turn, 1 (normal and low) on every other `ratio`-th, else 0 (all). A ratio of null or below 2 is strict
 * priority: always 0.
 *
 * @example [1, 2, 3, 4].map((turn) => priorityFloor(turn, 2)) // [0, 1, 0, 2]
 */
export function priorityFloor(counter: number, ratio: number | null): PriorityTier {
  if (ratio === null || ratio < 2) return 0;
  if (counter % (ratio * ratio) === 0) return 2;
  return counter % ratio === 0 ? 1 : 0;
}
