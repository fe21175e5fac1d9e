import { hasBrand } from "./brand.ts";
import { isArray } from "./is-array.ts";
import type { JobId } from "./job-id.ts";
import { isRetryableSqlState } from "./sql-state.ts";

/**
 * What went wrong, for programs.
 *
 * - `invalid-argument`: an option, argument, key or kind is not acceptable; `argument` names it.
 * - `serialization`: JSON or jsonb cannot hold the value; `path` says where.
 * - `validation`: a schema refused the value; `path` and `issues` say where and why.
 * - `merge`: a merge function threw, or returned a promise or something that is no decision. Where the error is retryable,
 *   the pending job that was decided about has changed since.
 * - `enqueue-unknown`: the connection was lost before the answer came; repeat with the same `id` (or `ids`).
 * - `id-conflict`: the id belongs to a job of another kind or key.
 * - `not-migrated`: the database lacks venturi's tables; run migrate.
 * - `migration`: a migration could not be applied.
 * - `claim-lost`: the run no longer holds its claim.
 * - `already-run`: a worker was run a second time, or while it was running, or was given a task after it had started.
 * - `closed`: the store has been closed, or the worker was stopped before `runOnce`.
 * - `shutdown`, `lease-ended`: reasons of a handler's abort signal.
 * - `database`: a statement failed; `sqlState` says how.
 */
export type VenturiErrorCode =
  | "invalid-argument"
  | "serialization"
  | "validation"
  | "merge"
  | "enqueue-unknown"
  | "id-conflict"
  | "not-migrated"
  | "migration"
  | "claim-lost"
  | "already-run"
  | "closed"
  | "shutdown"
  | "lease-ended"
  | "database";

/** The codes that a handler's abort signal carries as its reason. */
export type AbortCode = "shutdown" | "lease-ended" | "claim-lost";

/** One thing a schema refused: where, and why, without the value that was refused. */
export interface ValidationIssue {
  readonly message: string;
  /** Keys from the validated value down to what was refused; empty for the value itself. */
  readonly path: readonly (string | number)[];
}

/** What a {@link VenturiError} carries besides its code and message; see the members of the error. */
export interface VenturiErrorOptions {
  readonly cause?: unknown;
  /**
   * Whether the same call may succeed when it is made again.
   * @defaultValue by code: true for `enqueue-unknown`, by SQLSTATE for `database`, false for every other
   */
  readonly isRetryable?: boolean | undefined;
  readonly argument?: string | undefined;
  readonly path?: string | undefined;
  readonly issues?: readonly ValidationIssue[] | undefined;
  readonly sqlState?: string | undefined;
  readonly id?: JobId | undefined;
  readonly ids?: readonly JobId[] | undefined;
}

const errorBrand = Symbol.for("venturi.error");

/** Every error that venturi throws. Recognise it with {@link isVenturiError}, then read `code`. */
export class VenturiError extends Error {
  readonly code: VenturiErrorCode;
  /** Whether the same call may succeed when it is made again. */
  readonly isRetryable: boolean;
  /** With `invalid-argument`: the option or argument. */
  declare readonly argument?: string;
  /** With `serialization` and `validation`: where in the value, as in `payload.items[2].price`. */
  declare readonly path?: string;
  /** With `validation`: what the schema refused. */
  declare readonly issues?: readonly ValidationIssue[];
  /** With `database`: the SQLSTATE, where the server gave one. */
  declare readonly sqlState?: string;
  /** The job that the error is about; with `enqueue-unknown` the id to repeat the call with. */
  declare readonly id?: JobId;
  /**
   * With `enqueue-unknown` from `enqueueMany`: the ids to repeat the call with, in the order of its jobs. With a retryable
   * `merge`: those jobs of the call that earlier calls have stored or merged.
   */
  declare readonly ids?: readonly JobId[];

  constructor(code: VenturiErrorCode, message: string, options: VenturiErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.isRetryable = options.isRetryable ?? isRetryableByDefault(code, options.sqlState);
    if (options.argument !== undefined) this.argument = options.argument;
    if (options.path !== undefined) this.path = options.path;
    if (options.issues !== undefined) this.issues = options.issues;
    if (options.sqlState !== undefined) this.sqlState = options.sqlState;
    if (options.id !== undefined) this.id = options.id;
    if (options.ids !== undefined) this.ids = options.ids;
  }
}

// Not in a static block, for which the bundler would rename the class, and errors would print with that name.
Object.defineProperty(VenturiError.prototype, errorBrand, { value: true });
Object.defineProperty(VenturiError.prototype, "name", {
  value: "VenturiError",
  writable: true,
});

function isRetryableByDefault(code: VenturiErrorCode, sqlState: string | undefined): boolean {
  if (code === "database") return sqlState !== undefined && isRetryableSqlState(sqlState);
  return code === "enqueue-unknown";
}

/** Whether a caught value is an error of venturi's, even one thrown by another copy of this package. */
export function isVenturiError(value: unknown): value is VenturiError {
  return hasBrand(value, errorBrand);
}

/** `invalid-argument`: "`argument` `what`: `hint`". */
export function invalidArgument(
  argument: string,
  what: string,
  hint: string,
  options: { readonly cause?: unknown } = {},
): VenturiError {
  return new VenturiError("invalid-argument", `${argument} ${what}: ${hint}`, {
    ...options,
    argument,
  });
}

/** What `read` makes of an argument; where reading it throws, as a getter or a proxy can, `invalid-argument` naming it. */
export function readArgument<T>(argument: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (isVenturiError(error)) throw error;
    throw invalidArgument(argument, "threw when it was read", "pass plain values", {
      cause: error,
    });
  }
}

/** The reason of a handler's aborted signal: an error named "AbortError", as the platform's own is. */
export function abortReason(
  code: AbortCode,
  message: string,
  options: { readonly id?: JobId; readonly cause?: unknown } = {},
): VenturiError {
  const error = new VenturiError(code, message, options);
  error.name = "AbortError";
  return error;
}

/** What ends a line or cannot be seen; JSON escapes only some of it. */
const unprintable = /[\p{Control}\u2028\u2029]/gu;

function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return `\\u${code.padStart(4, "0")}`;
  });
}

/** A value as an error message shows it: short, on one line, never a whole object. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return printable(JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value));
    case "symbol":
      return printable(String(value).slice(0, 60));
    case "bigint":
      return `${value}n`.slice(0, 60);
    case "object":
      if (value === null) return "null";
      return isArray(value) ? "an array" : "an object";
    case "function":
      return "a function";
    default:
      return String(value);
  }
}
