import type { Duration } from "./duration.ts";
import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import type { Logger } from "./logger.ts";
import type { Outcome } from "./outcome.ts";
import type { TaskCarry, TaskPayload } from "./task.ts";

/** What a handler knows about its run. `Tx` is the type of transaction in which the worker's store can complete a run. */
export interface JobContext<Carry = unknown, Tx = never> {
  readonly id: JobId;
  readonly kind: string;
  /** The headers the job was enqueued with; empty where there were none. */
  readonly headers: Headers;
  /** How often this job has been started, this run included. */
  readonly runCount: number;
  /** How often it has failed before this run. */
  readonly failureCount: number;
  /** What earlier runs left behind. Change or replace it: it is kept when this run pauses or is retried. */
  carry: Carry;
  /** Keeps a JSON value with this run's journal entry. The last value given counts; `undefined` takes it back. */
  attach(value: unknown): void;
  /**
   * The journal of this job so far, in order; with `limit`, its latest entries.
   *
   * Rejects with `database` when it cannot be read, and with `invalid-argument` for a limit that is no count.
   */
  history(options?: {
    readonly limit?: number | undefined;
    readonly signal?: AbortSignal | undefined;
  }): Promise<readonly JournalEntry[]>;
  /**
   * Aborts when the handler should come to an end. Its reason is a `VenturiError` named "AbortError" with the code
   * `shutdown`, `lease-ended` or `claim-lost`.
   */
  readonly signal: AbortSignal;
  /** When the lease ends, by the database's clock. After that someone else may run the job. */
  readonly deadline: Date;
  /** How long the lease still holds at least, in whole milliseconds; 0 when it has ended or the claim is lost. */
  timeRemaining(): number;
  /**
   * Extends the lease until `duration` from now by the database's clock (clamped to 1 second … 365 days), and returns the
   * new deadline. It never shortens the lease.
   *
   * Rejects with `claim-lost`, and aborts the signal, when the run no longer holds its claim; with `lease-ended` when the
   * lease ended before the store could extend it; and with `database` when the store refuses.
   */
  extendLease(duration: Duration): Promise<Date>;
  /**
   * Completes this run in a transaction of the handler's own: what the handler wrote there and the end of the run are
   * committed together, or not at all. When it has resolved, commit, and return nothing.
   *
   * Rejects with `claim-lost` when the run no longer holds its claim, and then the transaction cannot be committed; or when
   * the run has been completed already. Rejects with `invalid-argument` for what is no transaction of the store.
   *
   * Where the compiler says "not assignable to parameter of type 'never'", name the transaction in the handler's type:
   * `Handler<typeof Task, App, PostgresTransaction>`, with the type from `@venturi/store-postgres`.
   */
  readonly complete: (tx: Tx, note?: string) => Promise<void>;
  /** The worker's logger, which adds the job's id, kind and run count to each record. */
  readonly log: Logger;
}

/**
 * A handler as `register` takes it. The last member of the result is there for the compiler's message: no value has
 * its type, and its name says what to do when something else is returned.
 */
export type TaskHandler<Payload, Carry, State, Tx = never> = (
  payload: Payload,
  ctx: JobContext<Carry, Tx>,
  state: State,
) =>
  | Outcome
  | void
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement returns void
  | Promise<Outcome | void>
  | { readonly "return an Outcome or nothing": never };

/**
 * The handler of a task: does the work of one job.
 *
 * Returning nothing, or `Outcome.completed()`, completes the job; `Outcome.pauseFor` and `pauseUntil` make it run
 * again later with its carry; whatever is thrown is a failure, retried with backoff (see `TaskError` for more).
 * A handler that calls `ctx.complete` names the transaction of its store as `Tx`.
 *
 * @example
 * const sendEmail: Handler<typeof SendEmail, App> = async (email, ctx, app) => {
 *   await app.mailer.send(email, { signal: ctx.signal });
 * };
 */
export type Handler<T, State = unknown, Tx = never> = TaskHandler<
  TaskPayload<T>,
  TaskCarry<T>,
  State,
  Tx
>;
