import type { Verdict } from "./verdict.ts";

/** Runs a second in each window: what a rate is the median of, and whose it is. */
export interface Rate {
  readonly windows: readonly number[];
  readonly byWorker: Readonly<Record<string, readonly number[]>>;
}

const none: Rate = { windows: [], byWorker: {} };

/** What a scenario came to. */
export interface Figures extends Omit<Verdict, "runEnds"> {
  readonly scenario: string;
  readonly seed: number;
  readonly seconds: number;
  /** Until the backlog shrank after the fault had ended; null: it did not. */
  readonly recoveryMs: number | null;
  /** Runs a second. */
  readonly rateBefore: number;
  readonly rateAfter: number;
  readonly ratio: number;
  readonly rates: { readonly before: Rate; readonly after: Rate };
  /** Jobs left when the last window ended: without any, the rate after says how fast jobs came. */
  readonly backlogAfter: number;
  /** Processes that ended though nobody ended them. */
  readonly exits: number;
}

/** What is known of a scenario that could not be run to its end. */
export function abandoned(scenario: string, seed: number, error: unknown): Figures {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    scenario,
    seed,
    seconds: 0,
    enqueued: 0,
    runs: 0,
    completed: 0,
    dead: 0,
    merged: 0,
    lost: 0,
    invented: 0,
    stuck: 0,
    repeated: 0,
    doublySettled: 0,
    staleRecovered: 0,
    released: 0,
    losers: [],
    recoveryMs: null,
    rateBefore: 0,
    rateAfter: 0,
    ratio: 0,
    rates: { before: none, after: none },
    backlogAfter: 0,
    exits: 0,
    violations: [`it could not be run to its end: ${reason}`],
  };
}
