import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Backoff, isBackoff } from "./backoff.ts";
import { hasBrand } from "./brand.ts";
import { createUnsentJob, type UnsentJob } from "./job.ts";
import type { CarryProblem, PayloadProblem } from "./json-type.ts";
import type { ConstantMerge, MergeFunction } from "./merge.ts";
import { decodeJson, encodeJson } from "./payload-codec.ts";
import { callTask, type PreparedJob, prepareJob, wrongResult } from "./prepared-job.ts";
import type { InputOf, MaybePromise, OutputOf } from "./schema.ts";
import { resolveTaskSpec, type TaskDefinition, type TaskSpec } from "./task-spec.ts";

/**
 * A kind of job. Call it with a payload to get a job that can be enqueued. `I` is what the payload schema takes, `P` what
 * the handler gets, `C` the carry. All other members than `kind` are for queues and workers.
 */
export interface Task<K extends string = string, I = never, P = unknown, C = unknown> {
  /** Makes a job that has not been sent yet. Nothing is validated until it is enqueued. */
  (payload: I): UnsentJob<K>;
  readonly [taskBrand]: true;
  readonly kind: K;

  /**
   * For queues: validates and encodes an input and asks the task's callbacks about it, at once unless the payload
   * schema is asynchronous. The input is read before this returns; later changes to it do not matter.
   *
   * Throws (or rejects with) `serialization`, `validation`, or `invalid-argument` where a callback of the task threw
   * or returned what it must not.
   */
  prepare(input: unknown): MaybePromise<PreparedJob>;
  /** For queues: what decides when the dedup key is taken. */
  readonly merge: ConstantMerge | MergeFunction<unknown, unknown>;

  /**
   * For workers: the payload of stored JSON text as the handler gets it.
   *
   * Throws (or rejects with) `serialization` or `validation`.
   */
  decodePayload(text: string): MaybePromise<P>;
  /** For workers: the carry of stored JSON text, the initial one for null. Fails as `decodePayload` does. */
  decodeCarry(text: string | null): MaybePromise<C>;
  /** For workers: a carry as JSON text; null where there is nothing to store. Throws `serialization`. */
  encodeCarry(carry: unknown): string | null;
  /**
   * For workers: the task's own backoff for a payload; null: the worker's.
   *
   * Throws `invalid-argument` where the task's callback threw or returned something else.
   */
  backoffFor(payload: unknown): Backoff | null;
  /** For workers: the task's constant lease in milliseconds; null where it has none or computes it at enqueue. */
  readonly leaseMs: number | null;
  /** For workers: how many failures make a job dead; null: never; undefined: the worker decides. */
  readonly backstop: number | null | undefined;
}

const taskBrand: unique symbol = Symbol.for("venturi.task");

/** What a task's payload schema takes. */
export type TaskInput<T extends Task> = T extends (payload: infer I) => UnsentJob ? I : never;
/** What a task's handler gets as payload. */
export type TaskPayload<T> = T extends Task<string, never, infer P, unknown> ? P : never;
/** What a task's handler gets as carry. */
export type TaskCarry<T> = T extends Task<string, never, unknown, infer C> ? C : never;

/**
 * Defines a task: a kind of job, and how its jobs are treated.
 *
 * Throws `invalid-argument` naming the option that is unknown or unacceptable.
 *
 * @example
 * const SendEmail = defineTask({
 *   kind: "send_email",
 *   payload: v.object({ to: v.pipe(v.string(), v.email()), subject: v.string() }),
 * });
 * await queue.enqueue(SendEmail({ to: "a@example.com", subject: "Hi" }));
 */
export function defineTask<
  const K extends string,
  PS extends StandardSchemaV1,
  CS extends StandardSchemaV1 | undefined = undefined,
>(
  spec: TaskSpec<K, PS, CS> & PayloadProblem<PS> & CarryProblem<CS>,
): Task<K, InputOf<PS>, OutputOf<PS>, OutputOf<CS>> {
  const definition = resolveTaskSpec<K, PS, CS>(spec);
  // What was checked, not what a getter says next.
  const kind = definition.kind as K;
  const task = ((input: unknown) => createUnsentJob(kind, task, input)) as Task<
    K,
    InputOf<PS>,
    OutputOf<PS>,
    OutputOf<CS>
  >;
  Object.defineProperty(task, "name", { value: kind });
  return Object.freeze(
    Object.assign(task, { [taskBrand]: true, kind, ...taskMembers(definition) }),
  );
}

/** Whether a value is a task, even one defined with another copy of this package. */
export function isTask(value: unknown): value is Task {
  return hasBrand(value, taskBrand);
}

function taskMembers(definition: TaskDefinition): Omit<Task, "kind" | typeof taskBrand> {
  const { kind, validatePayload, validateCarry, merge, backoff, lease, backstop } = definition;
  const rules = {
    ...definition,
    merge: typeof merge === "function" ? ("function" as const) : merge,
    lease: typeof lease === "function" ? lease : null,
  };
  return {
    prepare: (input) => prepareJob(rules, input),
    merge,
    decodePayload: (text) => validatePayload(decodeJson(text, "payload", kind)),
    decodeCarry: (text) => {
      if (validateCarry === null) return undefined;
      return validateCarry(text === null ? undefined : decodeJson(text, "carry", kind));
    },
    encodeCarry: (carry) => {
      if (validateCarry === null || carry === undefined) return null;
      return encodeJson(carry, "carry", kind);
    },
    backoffFor: (payload) => {
      if (typeof backoff !== "function") return backoff;
      const result = callTask(backoff, "backoff", kind, payload);
      if (isBackoff(result)) return result;
      throw wrongResult("backoff", kind, result, "return a Backoff");
    },
    leaseMs: typeof lease === "number" ? lease : null,
    backstop,
  };
}
