import { readSignal } from "@venturi/core";

/** How runs ended, by outcome. */
export interface DrainedRuns {
  readonly completed: number;
  readonly paused: number;
  readonly retried: number;
  readonly dead: number;
}

/** What of a `Worker` is needed to drain its queue. */
export interface Drainable {
  runOnce(options?: { readonly signal?: AbortSignal | undefined }): Promise<DrainedRuns>;
}

/**
 * Runs what is due until nothing is: repeats `runOnce` until a call settles nothing, so that jobs that were paused or
 * retried without delay, and those that handlers enqueued, run as well. Returns how all the runs ended.
 *
 * A job that always pauses without delay is never done: give a `signal` to end the waiting. Jobs that are due later
 * stay; move the clock and drain again.
 *
 * @example const { completed } = await drain(worker);
 */
export async function drain(
  worker: Drainable,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<DrainedRuns> {
  const signal = readSignal(options, "drain");
  const total = { completed: 0, paused: 0, retried: 0, dead: 0 };
  for (;;) {
    signal?.throwIfAborted();
    const { completed, paused, retried, dead } = await worker.runOnce({ signal });
    total.completed += completed;
    total.paused += paused;
    total.retried += retried;
    total.dead += dead;
    if (completed + paused + retried + dead === 0) return total;
  }
}
