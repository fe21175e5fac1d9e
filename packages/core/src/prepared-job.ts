import { encodeDedupKey } from "./dedup-key.ts";
import { invalidArgument, show, type VenturiError } from "./errors.ts";
import { failureMessage } from "./failure-note.ts";
import { toLeaseMs } from "./lease.ts";
import type { ConstantMerge } from "./merge.ts";
import { decodeJson, encodeJson } from "./payload-codec.ts";
import { isPriority, type Priority } from "./priority.ts";
import { ignoreRejection, isPromise, type MaybePromise, type Validator } from "./schema.ts";
import { quotes } from "./schema-issue.ts";

/** All that a task says about a job at enqueue; the queue adds an id and the options of the call. */
export interface PreparedJob {
  readonly kind: string;
  /** JSON text of the input. */
  readonly payload: string;
  readonly priority: Priority;
  /** Null: never coalesced. */
  readonly dedupKey: string | null;
  /** "function": the task's merge function decides. */
  readonly merge: ConstantMerge | "function";
  /** What the task's lease function returned, in milliseconds; null where it has none. */
  readonly leaseMs: number | null;
}

/** A callback of a task, given the payload as the handler gets it. */
export type PayloadCallback = (payload: unknown) => unknown;

/** The parts of a task that matter at enqueue. */
export interface EnqueueRules {
  readonly kind: string;
  readonly validatePayload: Validator<unknown>;
  readonly priority: Priority | PayloadCallback;
  readonly dedupKey: PayloadCallback | null;
  readonly merge: ConstantMerge | "function";
  readonly lease: PayloadCallback | null;
}

/** Prepares one input by a task's rules; see `Task.prepare`. */
export function prepareJob(rules: EnqueueRules, input: unknown): MaybePromise<PreparedJob> {
  const payload = encodeJson(input, "payload", rules.kind);
  // Validated is exactly what the worker will decode, never the caller's own object.
  const output = rules.validatePayload(decodeJson(payload, "payload", rules.kind), input);
  return isPromise(output)
    ? output.then((settled) => applyRules(rules, payload, settled))
    : applyRules(rules, payload, output);
}

function applyRules(rules: EnqueueRules, payload: string, output: unknown): PreparedJob {
  const { kind, merge, priority, dedupKey, lease } = rules;
  return {
    kind,
    payload,
    priority: typeof priority === "string" ? priority : callPriority(priority, kind, output),
    dedupKey: dedupKey === null ? null : callDedupKey(dedupKey, kind, output),
    merge,
    leaseMs: lease === null ? null : callLease(lease, kind, output),
  };
}

function callPriority(callback: PayloadCallback, kind: string, payload: unknown): Priority {
  const result = callTask(callback, "priority", kind, payload);
  if (isPriority(result)) return result;
  throw wrongResult("priority", kind, result, 'return "high", "normal" or "low"');
}

function callDedupKey(callback: PayloadCallback, kind: string, payload: unknown): string | null {
  const key = callTask(callback, "dedupKey", kind, payload);
  return encodeDedupKey(key, kind);
}

function callLease(callback: PayloadCallback, kind: string, payload: unknown): number {
  const result = callTask(callback, "lease", kind, payload);
  try {
    return toLeaseMs(result, "lease");
  } catch {
    throw wrongResult("lease", kind, result, 'return a duration, such as 60_000 or "1m"');
  }
}

/** Calls a task's callback; throws `invalid-argument` where it throws or returns a promise. */
export function callTask(
  callback: PayloadCallback,
  name: string,
  kind: string,
  payload: unknown,
): unknown {
  let result: unknown;
  try {
    result = callback(payload);
  } catch (error) {
    const message = failureMessage(error).slice(0, 300);
    const told = quotes(message, payload) ? "see the cause" : message;
    throw invalidArgument(name, `of ${JSON.stringify(kind)} threw`, told, { cause: error });
  }
  if (!isPromise(result)) return result;
  ignoreRejection(result);
  throw invalidArgument(
    name,
    `of ${JSON.stringify(kind)} returned a promise`,
    "it must be synchronous",
  );
}

/** `invalid-argument` for what a callback returned, without showing text: it may come from the payload. */
export function wrongResult(
  name: string,
  kind: string,
  result: unknown,
  hint: string,
): VenturiError {
  const got = typeof result === "string" ? "other text" : show(result);
  return invalidArgument(name, `of ${JSON.stringify(kind)} returned ${got}`, hint);
}
