import type { StandardSchemaV1 } from "@standard-schema/spec";
import { checkMembers } from "./argument.ts";
import { type Backoff, isBackoff } from "./backoff.ts";
import type { DedupKey } from "./dedup-key.ts";
import type { Duration } from "./duration.ts";
import { invalidArgument, readArgument, show } from "./errors.ts";
import { toKind } from "./kind.ts";
import { toLeaseMs } from "./lease.ts";
import { type ConstantMerge, type MergeFunction, toMerge } from "./merge.ts";
import type { PayloadCallback } from "./prepared-job.ts";
import { type Priority, toPriority } from "./priority.ts";
import { createValidator, type InputOf, type OutputOf, type Validator } from "./schema.ts";

/**
 * What `defineTask` takes. Callbacks get the payload that the handler gets, with defaults applied and transforms run. They
 * must be synchronous and free of effects. If one throws at enqueue, that call fails.
 */
export interface TaskSpec<
  K extends string,
  PS extends StandardSchemaV1,
  CS extends StandardSchemaV1 | undefined,
> {
  /**
   * The name that ties stored jobs to this task: 1 to 200 characters, none of them a control character. Never change it.
   */
  readonly kind: K;
  /** Any Standard Schema. It runs at enqueue, and again before the handler. Its input is what is stored, as JSON. */
  readonly payload: PS;
  /**
   * The schema of what a job keeps between its runs. It must accept undefined, and give the initial carry for it.
   * @defaultValue no carry
   */
  readonly carry?: CS;
  /**
   * How urgent a job is. The `priority` option of `enqueue` goes before it.
   * @defaultValue "normal"
   */
  readonly priority?: Priority | ((payload: OutputOf<PS>) => Priority) | undefined;
  /**
   * What makes two jobs the same work: a job that meets a pending job of its kind and key is merged into it, as `merge`
   * says. If the function returns null or undefined, the job has no key.
   * @defaultValue no key: jobs are never merged
   */
  readonly dedupKey?: ((payload: OutputOf<PS>) => DedupKey | null | undefined) | undefined;
  /**
   * What happens when a pending job has the same kind and key: `"keep"`, `"replace"`, `"independent"`, or a function that
   * decides.
   * @defaultValue "replace"
   */
  readonly merge?: ConstantMerge | MergeFunction<InputOf<PS>, OutputOf<CS>> | undefined;
  /**
   * How long a failed job waits before it is tried again.
   * @defaultValue the worker's
   */
  readonly backoff?: Backoff | ((payload: OutputOf<PS>) => Backoff) | undefined;
  /**
   * How long a run may hold its claim, clamped to 1 second … 365 days. A function is called at enqueue.
   * @defaultValue the worker's
   */
  readonly lease?: Duration | ((payload: OutputOf<PS>) => Duration) | undefined;
  /**
   * How many failures make a job dead, at least 1. Null: a job never dies of failures.
   * @defaultValue the worker's
   */
  readonly backstop?: number | null | undefined;
}

/** A checked task specification, its types erased. */
export interface TaskDefinition {
  readonly kind: string;
  readonly validatePayload: Validator<unknown>;
  readonly validateCarry: Validator<unknown> | null;
  readonly priority: Priority | PayloadCallback;
  readonly dedupKey: PayloadCallback | null;
  readonly merge: ConstantMerge | MergeFunction<unknown, unknown>;
  readonly backoff: Backoff | PayloadCallback | null;
  readonly lease: number | PayloadCallback | null;
  readonly backstop: number | null | undefined;
}

const optionNames = [
  "kind",
  "payload",
  "carry",
  "priority",
  "dedupKey",
  "merge",
  "backoff",
  "lease",
  "backstop",
];

const maxBackstop = 2_147_483_647;

/** Checks all that can be known when a task is defined; throws `invalid-argument` naming the option. */
export function resolveTaskSpec<
  K extends string,
  PS extends StandardSchemaV1,
  CS extends StandardSchemaV1 | undefined,
>(spec: TaskSpec<K, PS, CS>): TaskDefinition {
  return readArgument("task", () => checkTaskSpec(spec));
}

function checkTaskSpec<
  K extends string,
  PS extends StandardSchemaV1,
  CS extends StandardSchemaV1 | undefined,
>(spec: TaskSpec<K, PS, CS>): TaskDefinition {
  if (typeof spec !== "object" || spec === null) {
    throw invalidArgument("task", `is ${show(spec)}`, "pass { kind, payload, … }");
  }
  checkMembers("task", spec, optionNames, "a task");
  const kind = toKind(spec.kind, "kind");
  const { priority = "normal", dedupKey, merge = "replace", backoff, lease, backstop } = spec;
  return {
    kind,
    validatePayload: createValidator(spec.payload, "payload", kind),
    validateCarry: spec.carry === undefined ? null : createValidator(spec.carry, "carry", kind),
    priority: isCallback(priority) ? priority : toPriority(priority, "priority"),
    dedupKey: dedupKey === undefined ? null : toCallback(dedupKey, "dedupKey"),
    merge: toMerge(merge, "merge"),
    backoff: backoff === undefined ? null : toBackoff(backoff),
    lease: lease === undefined ? null : isCallback(lease) ? lease : toLeaseMs(lease, "lease"),
    backstop: toBackstop(backstop),
  };
}

function isCallback(value: unknown): value is PayloadCallback {
  return typeof value === "function";
}

function toCallback(value: unknown, argument: string): PayloadCallback {
  if (isCallback(value)) return value;
  const what = `is not a function (got ${show(value)})`;
  throw invalidArgument(argument, what, "pass a function of the payload");
}

function toBackoff(value: unknown): Backoff | PayloadCallback {
  if (isBackoff(value) || isCallback(value)) return value;
  throw invalidArgument(
    "backoff",
    `is not a Backoff (got ${show(value)})`,
    'pass new Backoff({ base: "1s", cap: "5m" }), or a function of the payload that returns one',
  );
}

function toBackstop(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return value;
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= maxBackstop) {
    return value as number;
  }
  throw invalidArgument(
    "backstop",
    `is not a number of failures (got ${show(value)})`,
    "pass a whole number of at least 1, or null for never",
  );
}
