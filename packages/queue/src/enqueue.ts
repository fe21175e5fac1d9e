import {
  checkMembers,
  type Duration,
  differenceMs,
  FAR_FUTURE_MS,
  type Headers,
  type Instant,
  invalidArgument,
  isUnsentJob,
  type JobId,
  type PreparedJob,
  type Priority,
  readArgument,
  type Task,
  toEpochMs,
  toHeaders,
  toJobId,
  toPriority,
  type UnsentJob,
} from "@venturi/core";
import { nextJobId } from "./job-ids.ts";
import type { QueuedJob } from "./merging.ts";

/** How one job is enqueued, beyond what its task says. */
export interface JobOptions {
  /**
   * How long until the job is due, from now by the database's clock. A negative number means 0. Not together with `runAt`.
   * @defaultValue due at once
   */
  readonly delay?: Duration | undefined;
  /** When the job is due; a time in the past means now. Not together with `delay`. */
  readonly runAt?: Instant | undefined;
  /**
   * How urgent the job is.
   * @defaultValue the task's
   */
  readonly priority?: Priority | undefined;
  /**
   * Small metadata that travels with the job, such as a trace context: a plain object of strings. All names and values
   * together have at most 8,192 UTF-16 units.
   */
  readonly headers?: Headers | undefined;
  /**
   * The job's id, a ULID, which makes the call repeatable: a second call with the same id stores nothing and returns what
   * the first one returned.
   * @defaultValue a new id
   */
  readonly id?: JobId | undefined;
}

/** How to stop waiting for a call. */
export interface WaitOptions {
  /**
   * Ends the waiting: the call rejects with the signal's reason. What has not been sent yet is left out. What has been sent
   * is carried out all the same: a job is stored; a retry, a cancel or a batch of a cleanup is done.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The options of `enqueue`. */
export interface EnqueueOptions extends JobOptions, WaitOptions {}

/** A job, or a job with options of its own. */
export type EnqueueItem = UnsentJob | ({ readonly job: UnsentJob } & JobOptions);

const jobOptionNames = ["delay", "runAt", "priority", "headers", "id"];
/** `signal` has been taken out by then. It is listed for the message about an option that is misspelt. */
const enqueueOptionNames = [...jobOptionNames, "signal"];
const itemMemberNames = ["job", ...jobOptionNames];

/** Checks a job and its options, and makes of them what a store is given; a promise only if its schema is asynchronous. */
export function toEnqueueJob(job: UnsentJob, options: JobOptions): QueuedJob | Promise<QueuedJob> {
  if (!isUnsentJob(job)) {
    throw invalidArgument("job", "is not a job", "call a task with its payload: Task(payload)");
  }
  const chosen = readArgument("options", () => {
    checkMembers("options", options, enqueueOptionNames, "enqueue");
    return readOptions(options);
  });
  const prepared = job.task.prepare(job.input);
  return "then" in prepared
    ? prepared.then((settled) => combine(settled, chosen, job.task))
    : combine(prepared, chosen, job.task);
}

/** The same for an item of `enqueueMany`. */
export function toItemJob(item: EnqueueItem): QueuedJob | Promise<QueuedJob> {
  if (isUnsentJob(item)) return toEnqueueJob(item, {});
  const { job, ...options } = readArgument("item", () => {
    checkMembers("item", item, itemMemberNames, "an item of enqueueMany");
    return { ...item };
  });
  return toEnqueueJob(job, options);
}

interface ChosenOptions {
  readonly identity: { readonly id: JobId; readonly repeatable?: true };
  readonly priority: Priority | undefined;
  readonly headers: Headers | null;
  readonly due: { readonly delayMs?: number; readonly runAt?: number };
}

function readOptions({ delay, runAt, priority, headers, id }: JobOptions): ChosenOptions {
  if (delay !== undefined && runAt !== undefined) {
    throw invalidArgument(
      "delay",
      "cannot go with runAt",
      "both say when the job is due; pass one",
    );
  }
  return {
    identity: id === undefined ? { id: nextJobId() } : { id: toJobId(id, "id"), repeatable: true },
    priority: priority === undefined ? undefined : toPriority(priority, "priority"),
    headers: toHeaders(headers),
    due: readDue(delay, runAt),
  };
}

function readDue(delay: Duration | undefined, runAt: Instant | undefined): ChosenOptions["due"] {
  if (runAt !== undefined) return { runAt: toEpochMs(runAt, "runAt") };
  if (delay === undefined) return {};
  const delayMs = differenceMs(delay, "delay");
  // A delay that has been cut to the far date means that date, not a time that long after now.
  return delayMs === FAR_FUTURE_MS ? { runAt: FAR_FUTURE_MS } : { delayMs };
}

function combine(
  prepared: PreparedJob,
  { identity, priority, headers, due }: ChosenOptions,
  task: Task,
): QueuedJob {
  const { kind, payload, dedupKey, merge, leaseMs } = prepared;
  return {
    ...identity,
    kind,
    payload,
    priority: priority ?? prepared.priority,
    dedupKey,
    ...(merge !== "function" ? { merge } : dedupKey === null ? {} : { task }),
    leaseMs,
    headers,
    ...due,
  };
}
