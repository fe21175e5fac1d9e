import { hasBrand, TASK_ERROR_BRAND } from "./brand.ts";
import { type Duration, differenceMs } from "./duration.ts";
import { invalidArgument, readArgument } from "./errors.ts";
import { failureMessage } from "./failure-note.ts";

interface Disposition {
  readonly permanent: boolean;
  readonly afterMs: number | null;
}

/**
 * What a handler throws to decide what its failure does to the job. After any other error the job is retried with backoff.
 *
 * @example throw TaskError.permanent("the account was deleted")
 * @example throw TaskError.retry(error, { after: "10m" })
 */
export class TaskError extends Error {
  /** Whether the job is dead at once. */
  readonly permanent: boolean;
  /** Milliseconds until the next attempt; null: as the backoff says. */
  readonly afterMs: number | null;

  private constructor(message: string, options: ErrorOptions, disposition: Disposition) {
    super(message, options);
    this.permanent = disposition.permanent;
    this.afterMs = disposition.afterMs;
  }

  /** The job is dead at once. An error may be passed instead of a message: it gives its message, and becomes the cause. */
  static permanent(messageOrError: unknown, options: { readonly cause?: unknown } = {}): TaskError {
    const { message, cause } = toMessage(messageOrError);
    const errorOptions = readArgument("TaskError options", () => {
      checkOptions(options, "cause");
      return "cause" in options ? { cause: options.cause } : cause;
    });
    return new TaskError(message, errorOptions, { permanent: true, afterMs: null });
  }

  /**
   * A failure like any other, but the job is tried again after `after` rather than when the backoff says. A negative number
   * means 0; without `after` the backoff decides. An error may be passed instead of a message, as to `permanent`.
   *
   * Throws `invalid-argument` where `after` is no duration.
   */
  static retry(messageOrError: unknown, options: { readonly after?: Duration } = {}): TaskError {
    const { message, cause } = toMessage(messageOrError);
    const { after } = readArgument("TaskError options", () => {
      checkOptions(options, "after");
      return { after: options.after };
    });
    const afterMs = after === undefined ? null : differenceMs(after, "TaskError.retry after");
    return new TaskError(message, cause, { permanent: false, afterMs });
  }
}

// Not in a static block, for which the bundler would rename the class, and errors would print with that name.
Object.defineProperty(TaskError.prototype, TASK_ERROR_BRAND, { value: true });
Object.defineProperty(TaskError.prototype, "name", { value: "TaskError", writable: true });

/** Whether a thrown value is a `TaskError`, even one made by another copy of this package. */
export function isTaskError(value: unknown): value is TaskError {
  return hasBrand(value, TASK_ERROR_BRAND);
}

function toMessage(messageOrError: unknown): { message: string; cause: ErrorOptions } {
  if (typeof messageOrError === "string") {
    return {
      message: messageOrError.trim() === "" ? failureMessage(messageOrError) : messageOrError,
      cause: {},
    };
  }
  return { message: failureMessage(messageOrError), cause: { cause: messageOrError } };
}

function checkOptions(options: object, known: string): void {
  for (const name of Object.keys(options)) {
    if (name !== known)
      throw invalidArgument(`TaskError ${name}`, "is not an option", `use ${known}`);
  }
}
