import { readSignal } from "@venturi/core";

/** How many runs ended in which way. */
export interface DrainedRuns {
  readonly completed: number;
  readonly paused: number;
  readonly retried: number;
  readonly dead: number;
}

/** What `drain` needs of a `Worker`. */
export interface Drainable {
  runOnce(options?: { readonly signal?: AbortSignal | undefined }): Promise<DrainedRuns>;
}

/**
 * Runs jobs until none is due: it repeats `runOnce` until a call settles nothing. So jobs that were paused or retried
 * without delay run again, and jobs that handlers have enqueued run too. Returns how all the runs ended.
 *
 * Jobs that are due later stay pending: move the clock, and drain again. A job that always pauses without delay would run
 * for ever: pass a `signal` to end that.
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
