import { hasBrand } from "./brand.ts";
import type { Task } from "./task.ts";

const unsentBrand: unique symbol = Symbol.for("venturi.unsent-job");

/** A job that has not been enqueued yet: what calling a task returns, and what `enqueue` takes. */
export interface UnsentJob<K extends string = string> {
  readonly [unsentBrand]: true;
  readonly kind: K;
  readonly task: Task;
  /** What the task was called with; not looked at until a queue prepares it with `task.prepare`. */
  readonly input: unknown;
}

class TaskJob<K extends string> implements UnsentJob<K> {
  declare readonly [unsentBrand]: true;
  readonly kind: K;
  readonly task: Task;
  readonly input: unknown;

  static {
    Object.defineProperty(TaskJob.prototype, unsentBrand, { value: true });
  }

  constructor(kind: K, task: Task, input: unknown) {
    this.kind = kind;
    this.task = task;
    this.input = input;
  }
}

export function createUnsentJob<K extends string>(
  kind: K,
  task: Task,
  input: unknown,
): UnsentJob<K> {
  return new TaskJob(kind, task, input);
}

/** Whether a value is an unsent job, even one made by another copy of this package. */
export function isUnsentJob(value: unknown): value is UnsentJob {
  return hasBrand(value, unsentBrand);
}
