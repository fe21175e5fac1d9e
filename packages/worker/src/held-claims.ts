import type { JobId } from "@venturi/core";

/** The claims that this worker has been given and whose end the store has not confirmed yet. */
export class HeldClaims {
  readonly #runCounts = new Map<JobId, number>();

  add(jobId: JobId, runCount: number): void {
    this.#runCounts.set(jobId, runCount);
  }

  /** Forgets this claim; a newer one of the same job stays. */
  remove(jobId: JobId, runCount: number): void {
    if (this.has(jobId, runCount)) this.#runCounts.delete(jobId);
  }

  has(jobId: JobId, runCount: number): boolean {
    return this.#runCounts.get(jobId) === runCount;
  }

  jobIds(): JobId[] {
    return [...this.#runCounts.keys()];
  }
}
