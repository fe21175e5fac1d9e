import {
  type Headers,
  invalidArgument,
  type JobId,
  type JournalEntry,
  type Logger,
  show,
  type WorkerStore,
} from "@venturi/core";
import type { Run } from "./run.ts";
import { loggerWith } from "./safe-logger.ts";

/** What a handler knows of the run it is. */
export interface JobContext<Carry = undefined> {
  readonly id: JobId;
  readonly kind: string;
  /** The headers the job was enqueued with; empty where there were none. */
  readonly headers: Headers;
  /** How often this job has been started, this run included. */
  readonly runCount: number;
  /** How often it has failed before this run. */
  readonly failureCount: number;
  /** What earlier runs left behind; change or replace it, and it is kept when this run pauses or is retried. */
  carry: Carry;
  /** Keeps a JSON value with this run's journal entry; the last one given counts. */
  attach(value: unknown): void;
  /**
   * What happened to this job so far, in order; with `limit`, its latest entries.
   *
   * Rejects with `database` when it cannot be read, and `invalid-argument` for a limit that is no count.
   */
  history(options?: {
    readonly limit?: number;
    readonly signal?: AbortSignal;
  }): Promise<readonly JournalEntry[]>;
  /**
   * Aborts when the handler should come to an end. Its reason is a `VenturiError` named "AbortError" with the code
   * `shutdown`, `lease-ended` or `claim-lost`.
   */
  readonly signal: AbortSignal;
  /** When the lease ends by the database's clock. After that the job may be run by someone else. */
  readonly deadline: Date;
  /** The worker's logger; adds the job's id, kind and run. */
  readonly log: Logger;
}

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
