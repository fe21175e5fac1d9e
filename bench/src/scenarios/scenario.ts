import type { BenchContext } from "../context.ts";

/** One question, answered by a run. */
export interface Scenario<T> {
  readonly name: string;
  run(context: BenchContext): Promise<T>;
}

/** Runs one measurement; a system that fails at it is a problem and leaves a gap, not the end of the run. */
export async function attempt<T>(
  context: BenchContext,
  what: string,
  measure: () => Promise<T>,
): Promise<T | null> {
  try {
    return await measure();
  } catch (error) {
    context.problem(`${what}: ${error instanceof Error ? (error.stack ?? error.message) : error}`);
    return null;
  }
}
