import {
  type Headers,
  invalidArgument,
  type JobContext,
  type JobId,
  type JournalEntry,
  type Logger,
  show,
  type WorkerStore,
} from "@venturi/core";
import type { Run } from "./run.ts";
import { loggerWith } from "./safe-logger.ts";

export interface ContextServices {
  readonly store: Pick<WorkerStore, "readJournal">;
  readonly logger: Logger;
}

const noHeaders: Headers = Object.freeze(Object.create(null));

/** What a handler sees of its run. What it may never ask for is made when it is asked for. */
export class RunContext implements JobContext<unknown> {
  carry: unknown;
  readonly #run: Run;
  readonly #services: ContextServices;
  #log: Logger | null = null;

  constructor(run: Run, carry: unknown, services: ContextServices) {
    this.carry = carry;
    this.#run = run;
    this.#services = services;
  }

  get id(): JobId {
    return this.#run.job.id;
  }

  get kind(): string {
    return this.#run.job.kind;
  }

  get headers(): Headers {
    return this.#run.job.headers ?? noHeaders;
  }

  get runCount(): number {
    return this.#run.job.runCount;
  }

  get failureCount(): number {
    return this.#run.job.failureCount;
  }

  get deadline(): Date {
    return this.#run.job.leaseExpiresAt;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get log(): Logger {
    const { id: jobId, kind, runCount } = this.#run.job;
    this.#log ??= loggerWith(this.#services.logger, { jobId, kind, runCount });
    return this.#log;
  }

  attach(value: unknown): void {
    this.#run.attach(value);
  }

  async history(
    options: { readonly limit?: number; readonly signal?: AbortSignal } = {},
  ): Promise<readonly JournalEntry[]> {
    const { limit, signal } = options;
    if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
      throw invalidArgument(
        "limit",
        `is not a count (got ${show(limit)})`,
        "pass a whole number of at least 1",
      );
    }
    const request = { jobId: this.#run.job.id, limit, signal };
    return (await this.#services.store.readJournal(request)).entries;
  }
}
