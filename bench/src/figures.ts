/** What one system did with one queue full of jobs. */
export interface DrainFigures {
  readonly enqueuePerSecond: number;
  /** From the start of the worker to the end of the last handler. */
  readonly handledPerSecond: number;
  /** From the start of the worker until it had stopped, all results written. */
  readonly drainPerSecond: number;
  /** Jobs per second in each tenth of the run, by the ends of handlers. */
  readonly byTenth: readonly number[];
  readonly walBytesPerJob: { readonly enqueue: number; readonly drain: number };
  readonly statementsPerJob: number;
  /** Share of updates that were heap-only; null where the system has no queue table of its own to ask. */
  readonly hotShare: number | null;
}

/** The middle value; of an even number, the lower of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

/** "median (lowest–highest)" in whole numbers, or with the digits asked for. */
export function spread(values: readonly number[], digits = 0): string {
  const show = (value: number) => value.toFixed(digits);
  return `${show(median(values))} (${show(Math.min(...values))}–${show(Math.max(...values))})`;
}
