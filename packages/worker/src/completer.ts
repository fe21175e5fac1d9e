import {
  invalidArgument,
  isVenturiError,
  Outcome,
  type RunResult,
  type Settlement,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import { claimLost } from "./lease-extender.ts";
import type { Run } from "./run.ts";

/** Completes runs in transactions of their handlers. Whether those commit shows when the handler has ended. */
export class Completer {
  readonly #options: CompleterOptions;

  constructor(options: CompleterOptions) {
    this.#options = options;
  }

  /** Rejects with `claim-lost`, `invalid-argument`, or what the store says. */
  async complete(run: Run, tx: unknown, givenNote: string | undefined): Promise<void> {
    const { store, worker, settlement, onLost } = this.#options;
    if (store.complete === undefined) {
      const hint = "return from the handler instead, or use a store that has transactions";
      throw invalidArgument("tx", "cannot be used, the store takes part in no transactions", hint);
    }
    // Asking the store again would wait for a lock that the first transaction holds, for as long as this handler waits.
    if (run.completion !== "none") {
      throw claimLost(run, "complete", "ctx.complete has been called for it already");
    }
    if (run.hasEnded || run.isReleased) {
      throw claimLost(run, "complete", "the worker has ended it");
    }
    const outcome = Outcome.completed(givenNote);
    const { note, attachment } = settlement(run, { type: "completed", note: outcome.note });
    const { id: jobId, runCount } = run.job;
    run.completion = "asked";
    try {
      await store.complete(tx as never, { worker, jobId, runCount, note, attachment });
      run.completion = "written";
    } catch (error) {
      run.completion = "none";
      if (isVenturiError(error) && error.code === "claim-lost") onLost(run);
      throw error;
    }
  }
}

export interface CompleterOptions {
  readonly store: Pick<WorkerStore, "complete">;
  readonly worker: WorkerId;
  /** What is written where a run ends like this. */
  readonly settlement: (run: Run, result: RunResult) => Settlement;
  /** The run no longer holds its claim. */
  readonly onLost: (run: Run) => void;
}
