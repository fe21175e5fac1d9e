import {
  type Backoff,
  checkMembers,
  invalidArgument,
  isTask,
  type MaybePromise,
  readArgument,
  show,
  type Task,
  type TaskHandler,
} from "@venturi/core";
import { toCount } from "./count.ts";
import type { KindSlots, Slots } from "./slots.ts";

/** How a task is registered. */
export interface RegisterOptions {
  /**
   * How many handlers of this kind run at once on this worker, at least 1.
   * @defaultValue the worker's concurrency
   */
  readonly cap?: number | undefined;
}

/** A registered task. Its types were checked when it was registered, and are erased from here on. */
export interface Registration {
  readonly task: RegisteredTask;
  readonly handler: TaskHandler<unknown, unknown, unknown, unknown>;
  readonly slots: KindSlots;
  /** The lease of jobs that carry none of their own, in milliseconds. */
  readonly leaseMs: number;
  /** How many failures make a job dead; null: never. */
  readonly backstop: number | null;
  /** Whether a return value that is no outcome has been warned about. */
  hasWarnedOfResult: boolean;
}

/** What a worker needs of a task. */
export interface RegisteredTask {
  readonly kind: string;
  decodePayload(text: string): MaybePromise<unknown>;
  decodeCarry(text: string | null): MaybePromise<unknown>;
  encodeCarry(carry: unknown): string | null;
  backoffFor(payload: unknown): Backoff | null;
}

/** What holds for kinds whose task says nothing. */
export interface RegistryDefaults {
  readonly leaseMs: number;
  readonly backstop: number | null;
}

/** The kinds a worker knows, each with its handler. */
export class HandlerRegistry {
  readonly #defaults: RegistryDefaults;
  readonly #slots: Slots;
  readonly #registrations = new Map<string, Registration>();

  constructor(defaults: RegistryDefaults, slots: Slots) {
    this.#defaults = defaults;
    this.#slots = slots;
  }

  /** Throws `invalid-argument` for what is no task or handler, and for a kind that is registered already. */
  add(
    task: Task,
    handler: TaskHandler<never, never, never, unknown>,
    options: RegisterOptions = {},
  ): void {
    if (!isTask(task)) {
      throw invalidArgument(
        "task",
        `is not a task (got ${show(task)})`,
        "pass what defineTask returned",
      );
    }
    const { kind } = task;
    const whose = JSON.stringify(kind);
    if (typeof handler !== "function") {
      throw invalidArgument(
        "handler",
        `of ${whose} is not a function (got ${show(handler)})`,
        "pass a function",
      );
    }
    if (this.#registrations.has(kind)) {
      throw invalidArgument("kind", `${whose} is registered already`, "register each kind once");
    }
    const cap = readArgument("options", () => {
      checkMembers("options", options, ["cap"], `register (for ${whose})`);
      const { cap } = options;
      return cap === undefined ? null : toCount(cap, "cap");
    });
    this.#registrations.set(kind, {
      task,
      handler: handler as TaskHandler<unknown, unknown, unknown, unknown>,
      slots: this.#slots.addKind(kind, cap),
      leaseMs: task.leaseMs ?? this.#defaults.leaseMs,
      backstop: task.backstop === undefined ? this.#defaults.backstop : task.backstop,
      hasWarnedOfResult: false,
    });
  }

  get(kind: string): Registration | undefined {
    return this.#registrations.get(kind);
  }

  get kinds(): string[] {
    return [...this.#registrations.keys()];
  }

  /** The shortest lease that a claim of these kinds carries, in milliseconds. */
  get shortestLeaseMs(): number {
    let shortest = Number.POSITIVE_INFINITY;
    for (const { leaseMs } of this.#registrations.values()) shortest = Math.min(shortest, leaseMs);
    return shortest;
  }
}
