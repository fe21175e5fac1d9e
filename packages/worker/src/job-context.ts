import {
  type Duration,
  type Headers,
  invalidArgument,
  type JobContext,
  type JobId,
  type JournalEntry,
  type Logger,
  readArgument,
  show,
  toLeaseMs,
  type WorkerStore,
} from "@venturi/core";
import type { Clock } from "./clock.ts";
import { claimLost } from "./lease-extender.ts";
import { loggerWith } from "./logger-with.ts";
import { headersOf, type Run } from "./run.ts";

export interface ContextServices {
  readonly store: Pick<WorkerStore, "readJournal">;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Moves the end of a run's lease. */
  readonly extendLease: (run: Run, leaseMs: number) => Promise<Date>;
  /** Completes a run in a transaction of its handler. */
  readonly complete: (run: Run, tx: unknown, note: string | undefined) => Promise<void>;
}

const extending = "extend the lease of";

/** What a handler sees of its run. What it may never ask for is made when it is asked for. */
export class RunContext implements JobContext<unknown, unknown> {
  carry: unknown;
  readonly #run: Run;
  readonly #services: ContextServices;
  #log: Logger | null = null;
  #hasWarnedOfAttachment = false;

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
    return headersOf(this.#run.job);
  }

  get runCount(): number {
    return this.#run.job.runCount;
  }

  get failureCount(): number {
    return this.#run.job.failureCount;
  }

  get deadline(): Date {
    return this.#run.deadline;
  }

  timeRemaining(): number {
    if (this.#run.hasLostClaim || this.#run.isReleased) return 0;
    return Math.max(0, Math.floor(this.#run.leaseEndsAt - this.#services.clock.now()));
  }

  async extendLease(duration: Duration): Promise<Date> {
    const run = this.#run;
    const leaseMs = toLeaseMs(duration, "duration");
    if (run.completion === "written") throw claimLost(run, extending, "it has been completed");
    if (run.hasEnded || run.isReleased) throw claimLost(run, extending, "the worker has ended it");
    return this.#services.extendLease(run, leaseMs);
  }

  complete(tx: unknown, note?: string): Promise<void> {
    return this.#services.complete(this.#run, tx, note);
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
    if (this.#run.completion === "written") this.#warnOfAttachment();
    else this.#run.attach(value);
  }

  #warnOfAttachment(): void {
    if (this.#hasWarnedOfAttachment) return;
    this.#hasWarnedOfAttachment = true;
    this.log.warn(
      "ctx.attach came after ctx.complete, so the attachment is not kept: attach first",
    );
  }

  async history(
    options: { readonly limit?: number; readonly signal?: AbortSignal } = {},
  ): Promise<readonly JournalEntry[]> {
    const { limit, signal } = readArgument("options", () => ({ ...options }));
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
