import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  invalidArgument,
  readArgument,
  show,
  type ValidationIssue,
  VenturiError,
} from "./errors.ts";
import { failureMessage } from "./failure-note.ts";
import { showPath } from "./json-path.ts";
import { describeIssues, quotes, valueAt } from "./schema-issue.ts";

/** What a schema takes; undefined where there is no schema. */
export type InputOf<S> = S extends StandardSchemaV1<infer I, unknown> ? I : undefined;
/** What a schema gives; undefined where there is no schema. */
export type OutputOf<S> = S extends StandardSchemaV1<unknown, infer O> ? O : undefined;

/** A value, or the promise of one where the schema or callback behind it is asynchronous. */
export type MaybePromise<T> = T | Promise<T>;

/** Whether a value is a promise, or anything else with a `then`. Never throws. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  if (typeof value !== "object" || value === null) return false;
  try {
    return "then" in value && isCallable(value.then);
  } catch {
    return false;
  }
}

/** Handles the rejection of a promise that should not have been returned: unhandled, it would end the process. */
export function ignoreRejection(promise: Promise<unknown>): void {
  Promise.resolve(promise).then(undefined, () => undefined);
}

function isCallable(value: unknown): boolean {
  return typeof value === "function";
}

/**
 * Validates a value against one schema, and returns the schema's output; as a promise only if the schema is asynchronous.
 *
 * `original` is the value whose JSON form `value` is, if any; it only makes the hint in the error better. Throws, or rejects
 * with, `validation` with path and issues. No message contains a part of the value.
 */
export type Validator<T> = (value: unknown, original?: unknown) => MaybePromise<T>;

/** Makes the validator of a task's `root`; throws `invalid-argument` where `schema` is no Standard Schema. */
export function createValidator<S extends StandardSchemaV1>(
  schema: S,
  root: "payload" | "carry",
  kind: string,
): Validator<OutputOf<S>> {
  const standard = readArgument(root, () => readStandard(schema, root));
  const where = `the ${root} of ${JSON.stringify(kind)}`;

  function conclude(
    result: StandardSchemaV1.Result<unknown>,
    value: unknown,
    original: unknown,
  ): OutputOf<S> {
    let issues: readonly ValidationIssue[];
    try {
      if (typeof result !== "object") throw new TypeError(`it is ${show(result)}`);
      if (result.issues === undefined) return result.value as OutputOf<S>;
      issues = describeIssues(result.issues, value);
    } catch (error) {
      throw unusable(where, root, error);
    }
    throw refused(where, root, issues, value, original);
  }

  return (value, original) => {
    let result: ReturnType<typeof standard.validate>;
    try {
      result = standard.validate(value);
    } catch (error) {
      throw threw(where, root, error, value);
    }
    if (!isPromise(result)) return conclude(result, value, original);
    // A thenable of another making may return nothing, call back twice or throw; a promise of our own does not.
    return Promise.resolve(result).then(
      (settled) => conclude(settled, value, original),
      (error: unknown) => {
        throw threw(where, root, error, value);
      },
    );
  };
}

function readStandard(schema: unknown, root: string): StandardSchemaV1["~standard"] {
  const holds = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  const standard = holds ? (schema as Partial<StandardSchemaV1>)["~standard"] : undefined;
  if (typeof standard?.validate === "function") return standard;
  throw invalidArgument(
    root,
    `is not a schema (got ${show(schema)})`,
    "pass a Standard Schema, such as valibot's v.object({ … })",
  );
}

function refused(
  where: string,
  root: string,
  issues: readonly ValidationIssue[],
  value: unknown,
  original: unknown,
): VenturiError {
  const [first] = issues;
  const shown = issues
    .slice(0, 3)
    .map(({ path, message }) => `${showPath(root, path)}: ${message}`)
    .join("; ");
  const more = issues.length > 3 ? `; and ${issues.length - 3} more` : "";
  const hint = issues.some(({ path }) => becameText(valueAt(original, path), valueAt(value, path)))
    ? "; a Date is stored as text, so accept a string and transform it"
    : "";
  return new VenturiError(
    "validation",
    `${where} does not match its schema: ${shown}${more}${hint}`,
    { path: showPath(root, first?.path ?? []), issues },
  );
}

function becameText(original: unknown, value: unknown): boolean {
  return typeof original === "object" && original !== null && typeof value === "string";
}

/** A schema that does not keep to the Standard Schema: what it returned says neither yes nor no. */
function unusable(where: string, root: string, error: unknown): VenturiError {
  const message = `${where} could not be validated: its schema answered with neither a value nor issues; use a Standard Schema`;
  return new VenturiError("validation", message, { path: root, issues: [], cause: error });
}

function threw(where: string, root: string, error: unknown, value: unknown): VenturiError {
  const message = failureMessage(error).slice(0, 300);
  const told = quotes(message, value) ? "see the cause" : message;
  return new VenturiError(
    "validation",
    `${where} could not be validated: its schema threw: ${told}`,
    {
      path: root,
      issues: [],
      cause: error,
    },
  );
}
