import type { Outcome, TaskCarry, TaskPayload } from "@venturi/core";
import type { JobContext } from "./job-context.ts";

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
 * Returning nothing, or `Outcome.completed()`, completes the job; `Outcome.pauseFor` and `pauseUntil` make it run again
 * later with its carry; whatever is thrown is a failure, retried with backoff (see `TaskError` for more).
 *
 * @example
 * const sendEmail: Handler<typeof SendEmail, App> = async (email, ctx, app) => {
 *   await app.mailer.send(email, { signal: ctx.signal });
 * };
 */
export type Handler<T, State = undefined> = TaskHandler<TaskPayload<T>, TaskCarry<T>, State>;
