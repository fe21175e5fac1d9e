import type { ClaimedJob, JobId } from "@venturi/core";

/** What a claim brought, by whether it is to be started. */
interface Sorted {
  readonly fresh: readonly ClaimedJob[];
  readonly seen: readonly ClaimedJob[];
}

/**
 * With `once`, the jobs that have run and are not completed for certain: their session must not run them again.
 * Otherwise none.
 */
export class SeenJobs {
  readonly #once: boolean;
  readonly #ids = new Set<JobId>();

  constructor(once: boolean) {
    this.#once = once;
  }

  /** A job has run, or runs without its claim. */
  add(jobId: JobId): void {
    if (this.#once) this.#ids.add(jobId);
  }

  /** A job is completed for certain: no claim can bring it any more. */
  completed(jobId: JobId): void {
    this.#ids.delete(jobId);
  }

  ids(): Iterable<JobId> {
    return this.#ids;
  }

  /** Sorts what a claim brought that may have been on its way already when its jobs were seen. */
  sort(jobs: readonly ClaimedJob[]): Sorted {
    return {
      fresh: jobs.filter(({ id }) => !this.#ids.has(id)),
      seen: jobs.filter(({ id }) => this.#ids.has(id)),
    };
  }
}
