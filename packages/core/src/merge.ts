import { hasBrand } from "./brand.ts";
import { type Instant, toDate } from "./duration.ts";
import { invalidArgument, readArgument, show } from "./errors.ts";
import type { JobId } from "./job-id.ts";
import type { JournalEntry } from "./journal.ts";
import { type Priority, toPriority } from "./priority.ts";

/**
 * What becomes of an enqueued job that meets a pending job with its kind and key, whatever their payloads are.
 *
 * - `keep`: the pending job stays as it is, the incoming one is dropped.
 * - `replace`: the pending job gets the incoming payload, priority, headers and lease, and starts with the initial
 *   carry; it is due at the earlier of the two times.
 * - `independent`: the incoming job is a job of its own.
 */
export type ConstantMerge = "keep" | "replace" | "independent";

const constantMerges = new Set<unknown>(["keep", "replace", "independent"]);

/** Whether a value is `keep`, `replace` or `independent`. */
export function isConstantMerge(value: unknown): value is ConstantMerge {
  return constantMerges.has(value);
}

/** A pending job as a merge function sees it; `payload` is an input, as the caller gave it. */
export interface Pending<P, C> {
  readonly id: JobId;
  readonly payload: P;
  readonly carry: C;
  readonly runCount: number;
  readonly failureCount: number;
  /** The latest hundred entries of its journal, in order. */
  readonly journal: readonly JournalEntry[];
  readonly visibleAt: Date;
  readonly priority: Priority;
}

const decisionBrand: unique symbol = Symbol.for("venturi.decision");

/** What a merge function decided; made by {@link Merge}. */
export type Decision<P, C> = { readonly [decisionBrand]: true } & (
  | { readonly decision: ConstantMerge }
  | {
      readonly decision: "with";
      readonly payload: P;
      /** Undefined: the carry that is stored stays. */
      readonly carry: C | undefined;
      /** Undefined: unchanged. */
      readonly visibleAt: Date | undefined;
      /** Undefined: unchanged. */
      readonly priority: Priority | undefined;
    }
);

/** Decides a merge by looking at both jobs. It must be synchronous and free of effects: it may be called more than once. */
export type MergeFunction<P, C> = (incoming: P, existing: Pending<P, C>) => Decision<P, C>;

/** What `Merge.with` can change besides payload and carry. */
export interface MergeChanges {
  /**
   * When the pending job is due; a time in the past means now.
   * @defaultValue unchanged
   */
  readonly visibleAt?: Instant | undefined;
  /** @defaultValue unchanged */
  readonly priority?: Priority | undefined;
}

function constant(decision: ConstantMerge): Decision<never, never> {
  return Object.freeze({ [decisionBrand]: true as const, decision });
}

const keep = constant("keep");
const replace = constant("replace");
const independent = constant("independent");

/** The decisions that a merge function returns. */
export const Merge = Object.freeze({
  /** The pending job stays as it is. */
  keep: (): Decision<never, never> => keep,
  /** The pending job gets the incoming payload, priority, headers and lease, and the initial carry. */
  replace: (): Decision<never, never> => replace,
  /** The incoming job is a job of its own. */
  independent: (): Decision<never, never> => independent,
  /**
   * The pending job gets this payload with the lease that the task gives it, and the incoming job's headers. Its carry, due
   * time and priority change only if they are given. Throws `invalid-argument` for a bad time or priority.
   */
  with: <P, C = never>(payload: P, carry?: C, changes: MergeChanges = {}): Decision<P, C> => {
    const { visibleAt, priority, ...unknown } = readArgument("Merge.with changes", () => ({
      ...changes,
    }));
    for (const name of Object.keys(unknown)) {
      throw invalidArgument(`Merge.with ${name}`, "is not a change", "use visibleAt and priority");
    }
    return Object.freeze({
      [decisionBrand]: true as const,
      decision: "with",
      payload,
      carry,
      visibleAt: visibleAt === undefined ? undefined : toDate(visibleAt, "visibleAt"),
      priority: priority === undefined ? undefined : toPriority(priority, "priority"),
    });
  },
});

/** Whether a value is a decision, even one made by another copy of this package. */
export function isDecision(value: unknown): value is Decision<unknown, unknown> {
  return hasBrand(value, decisionBrand);
}

/** Checks the `merge` of a task; throws `invalid-argument`. */
export function toMerge(
  value: unknown,
  argument: string,
): ConstantMerge | MergeFunction<unknown, unknown> {
  if (isConstantMerge(value)) return value;
  if (typeof value === "function") return value as MergeFunction<unknown, unknown>;
  throw invalidArgument(
    argument,
    `is not a way to merge (got ${show(value)})`,
    'use "keep", "replace", "independent" or a function that returns a Merge decision',
  );
}
