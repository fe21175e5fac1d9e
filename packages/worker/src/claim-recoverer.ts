import {
  type Backoff,
  decideRecovery,
  type Logger,
  type Recovery,
  type StaleClaim,
  type WorkerStore,
} from "@venturi/core";
import { loggedIds } from "./logged-ids.ts";
import { hasNothingToDoWithItems } from "./refusal.ts";
import { RefusedClaims } from "./refused-claims.ts";

export interface ClaimRecovererOptions {
  readonly store: Pick<WorkerStore, "recover">;
  readonly logger: Logger;
  readonly jitterFraction: number;
  /**
   * The backoff of the claim's task where it is known and the payload decodes in time, else the worker's. Never
   * throws, and never takes long.
   */
  readonly backoffOf: (claim: StaleClaim) => Backoff | Promise<Backoff>;
  /** The store has confirmed that a claim was recovered. */
  readonly onRecovery?: (claim: StaleClaim, recovery: Recovery) => void;
  /** Jobs are pending again. */
  readonly onRecovered: () => void;
}

/** Recovers stale claims that have been found, also where the store refuses some of them. */
export class ClaimRecoverer {
  readonly #options: ClaimRecovererOptions;
  readonly #signal: AbortSignal;
  readonly #refused: RefusedClaims;

  /** Once `signal` aborts, nothing is tried any more. */
  constructor(options: ClaimRecovererOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#refused = new RefusedClaims(options.logger);
  }

  /** How many claims the store has refused to recover. */
  get refused(): number {
    return this.#refused.size;
  }

  isRefused(claim: StaleClaim): boolean {
    return this.#refused.has(claim);
  }

  /** What was refused may be tried once more. */
  forgetRefused(): void {
    this.#refused.forget();
  }

  /** Returns which of them were recovered. */
  async recover(claims: readonly StaleClaim[]): Promise<readonly boolean[]> {
    if (claims.length === 0) return [];
    const { backoffOf, jitterFraction } = this.#options;
    // Together: each may wait for a schema, which must not add up.
    const backoffs = await Promise.all(claims.map((claim) => backoffOf(claim)));
    const recoveries = claims.map((claim, index) =>
      decideRecovery(claim, backoffs[index] as Backoff, jitterFraction),
    );
    try {
      return await this.#apply(recoveries, claims);
    } finally {
      this.#refused.tell();
    }
  }

  async #apply(
    recoveries: readonly Recovery[],
    claims: readonly StaleClaim[],
  ): Promise<readonly boolean[]> {
    const { store } = this.#options;
    try {
      const { applied } = await store.recover({ recoveries, signal: this.#signal });
      this.#tell(recoveries, claims, applied);
      return applied;
    } catch (error) {
      const [only] = recoveries;
      if (hasNothingToDoWithItems(error) || this.#signal.aborted || only === undefined) throw error;
      if (recoveries.length === 1) {
        // One row that cannot be updated must not stop the others.
        this.#refused.add(only, error);
        return [false];
      }
      const middle = Math.ceil(recoveries.length / 2);
      const first = await this.#apply(recoveries.slice(0, middle), claims.slice(0, middle));
      const second = await this.#apply(recoveries.slice(middle), claims.slice(middle));
      return [...first, ...second];
    }
  }

  #tell(
    recoveries: readonly Recovery[],
    claims: readonly StaleClaim[],
    applied: readonly boolean[],
  ): void {
    const { logger, onRecovery, onRecovered } = this.#options;
    const done = recoveries.filter((_, index) => applied[index]);
    if (done.length === 0) return;
    const jobIds = loggedIds(done.map(({ jobId }) => jobId));
    logger.warn("recovered stale claims", { claims: done.length, jobIds });
    recoveries.forEach((recovery, index) => {
      if (applied[index]) onRecovery?.(claims[index] as StaleClaim, recovery);
    });
    onRecovered();
  }
}
