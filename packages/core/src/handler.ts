import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import type { Logger } from "./logger.ts";
import type { Outcome } from "./outcome.ts";
import type { TaskCarry, TaskPayload } from "./task.ts";

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

/**
 * A handler as `register` takes it. The last member of the result is there for the compiler's message: no value has
 * its type, and its name says what to do when something else is returned.
 */
export type TaskHandler<Payload, Carry, State> = (
  payload: Payload,
  ctx: JobContext<Carry>,
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
 *
 * @example
 * const sendEmail: Handler<typeof SendEmail, App> = async (email, ctx, app) => {
 *   await app.mailer.send(email, { signal: ctx.signal });
 * };
 */
export type Handler<T, State = undefined> = TaskHandler<TaskPayload<T>, TaskCarry<T>, State>;
