import type { Logger, StaleClaim, WorkerId, WorkerStore } from "@venturi/core";
import type { Clock } from "./clock.ts";
import type { Run } from "./run.ts";
import { Trouble } from "./trouble.ts";

/** How many more claims than it knows of a worker may hold and still have them all listed at the first try. */
const spareClaims = 1_000;

export interface ClaimCheckOptions {
  readonly store: Pick<WorkerStore, "findStale">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Claims whose handlers have not ended, or not started. */
  readonly claims: () => readonly Run[];
  /** The run no longer holds its claim. */
  readonly onLost: (run: Run) => void;
}

/**
 * Finds out which runs of this worker have lost their claims, when there is reason to think that others took the worker
 * for dead. The handlers of such runs work in vain.
 */
export class ClaimCheck {
  readonly #options: ClaimCheckOptions;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  #checking: Promise<void> | null = null;
  /** Whether to look again: a reason came after the last look had begun, or that look failed. */
  #isDue = false;

  constructor(options: ClaimCheckOptions) {
    const { clock, logger } = options;
    this.#options = options;
    const doing = "look which runs still hold their claims";
    this.#trouble = new Trouble({ clock, logger, doing });
  }

  /** Looks now; if it is looking already, once more after that, since that look may have seen too little. */
  check(): void {
    this.#isDue = true;
    this.checkIfDue();
  }

  /** Looks again if the last look failed. To be called when the store has answered something. */
  checkIfDue(): void {
    if (!this.#isDue || this.#checking !== null || this.#abort.signal.aborted) return;
    this.#isDue = false;
    this.#checking = this.#look().then(
      () => {
        this.#checking = null;
        this.#trouble.succeeded();
        this.checkIfDue();
      },
      (error: unknown) => {
        this.#checking = null;
        this.#isDue = true;
        // Tried again with a later beat, so the wait does not matter.
        if (!this.#abort.signal.aborted) this.#trouble.failed(error);
      },
    );
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#checking;
  }

  async #look(): Promise<void> {
    const { claims, onLost } = this.#options;
    // Runs that start from now on may not be in the answer.
    const runs = claims();
    if (runs.length === 0) return;
    const held = await this.#held(runs.length + spareClaims);
    if (this.#abort.signal.aborted) return;
    const listed = new Map(held.map(({ jobId, runCount }) => [jobId, runCount]));
    for (const run of runs) {
      // A run that has been completed in its handler's own transaction is off the list as well.
      if (run.hasEnded || run.completion !== "none") continue;
      if (listed.get(run.job.id) !== run.job.runCount) onLost(run);
    }
  }

  /**
   * All claims that are this worker's according to the store. The list must be complete, since what is not on it counts as
   * lost; so the limit is doubled until the list is shorter.
   */
  async #held(limit: number): Promise<readonly StaleClaim[]> {
    const { store, worker } = this.#options;
    const holders = [{ worker, overdueOnly: false }];
    const { signal } = this.#abort;
    const { claims } = await store.findStale({ holders, orphans: false, limit, signal });
    return claims.length < limit || signal.aborted ? claims : this.#held(2 * limit);
  }
}
