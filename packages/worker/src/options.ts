import { randomBytes } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import {
  Backoff,
  checkMembers,
  cleanText,
  type Duration,
  durationMs,
  invalidArgument,
  isBackoff,
  type Logger,
  readArgument,
  show,
  silentLogger,
  toLeaseMs,
  toLogger,
} from "@venturi/core";
import type { Prefetch } from "./claim-ahead.ts";
import { isCount, toCount, toCountOrNull } from "./count.ts";

/** How a defect in a handler settles. */
export type PanicPolicy = "retry" | "dead";

/** How a worker runs. Every option may be left out, except `state` where a handler needs it. */
export interface WorkerOptions<State = undefined> {
  /** Handed to every handler as its third argument. */
  readonly state?: State;
  /**
   * How many handlers run at once, at least 1.
   * @defaultValue half of the CPU cores, at least 1, at most 8
   */
  readonly concurrency?: number | undefined;
  /**
   * The longest time without looking for jobs when no notification comes, at least 1 ms. `Infinity`: an idle
   * worker looks only when it is notified, or when a job that it knows of becomes due.
   * @defaultValue "30s"
   */
  readonly pollMax?: Duration | undefined;
  /**
   * How long a run may hold its claim, for tasks without a lease of their own; clamped to 1 second … 365 days.
   * @defaultValue "15m"
   */
  readonly lease?: Duration | undefined;
  /**
   * How often this worker publishes that it is alive, raised to 100 ms where it is shorter. It does so more often where `workerTimeout` or
   * a lease is less than three times as long.
   * @defaultValue "5s"
   */
  readonly heartbeat?: Duration | undefined;
  /**
   * How long this worker may be silent before others presume it dead and recover its jobs, at least 300 ms. `Infinity`: they
   * wait until the leases end.
   * @defaultValue "30s"
   */
  readonly workerTimeout?: Duration | undefined;
  /**
   * How long running handlers may take to end after a stop, before their jobs are released. `Infinity`: as long as they
   * like.
   * @defaultValue "30s"
   */
  readonly shutdownTimeout?: Duration | undefined;
  /**
   * How long failed jobs wait, for tasks without a backoff of their own.
   * @defaultValue new Backoff({ base: "500ms", cap: "2m" })
   */
  readonly backoff?: Backoff | undefined;
  /**
   * How much of a delay jitter may take away: a fraction, clamped to 0 … 1.
   * @defaultValue 0.5
   */
  readonly jitterFraction?: number | undefined;
  /**
   * How many failures make a job dead, at least 1, for tasks without a backstop of their own. Null: a job never dies of
   * failures.
   * @defaultValue 20
   */
  readonly backstop?: number | null | undefined;
  /**
   * What a defect does to a job. A defect is an error that shows a bug: a ReferenceError, a SyntaxError, a failed
   * assertion, an exhausted call stack, or a TypeError that is not a network failure. "retry": it is a failure like any
   * other. "dead": the job is dead at once. In both cases the run's changes to the carry are discarded.
   * @defaultValue "retry"
   */
  readonly panicPolicy?: PanicPolicy | undefined;
  /**
   * Every n-th job is taken from the lower priorities first, so that a flood of urgent jobs does not starve the rest. Null,
   * or 1: strict priority.
   * @defaultValue 4
   */
  readonly priorityRatio?: number | null | undefined;
  /**
   * How many jobs are claimed before there is a slot for them, so that slots need not wait for the database. They count
   * towards the cap of their kind. "auto": as many as the worker finishes in about 25 ms, and none where handlers take
   * longer; a job that has waited for a second is handed back. A number from 0 to 10,000: that many, each kept for at most
   * a third of its lease. 0: only as many as there are free slots.
   * @defaultValue "auto"
   */
  readonly prefetch?: Prefetch | undefined;
  /**
   * The name of this worker in the journal and in logs, at most 200 characters.
   * @defaultValue host:pid:random
   */
  readonly name?: string | undefined;
  /**
   * Told what an operator should know.
   * @defaultValue a logger that keeps silent
   */
  readonly logger?: Logger | undefined;
}

/** The default of every option that is the same for all workers. */
export const DEFAULT_WORKER_OPTIONS = Object.freeze({
  pollMax: "30s",
  lease: "15m",
  heartbeat: "5s",
  workerTimeout: "30s",
  shutdownTimeout: "30s",
  backoff: Object.freeze(new Backoff()),
  jitterFraction: 0.5,
  backstop: 20,
  panicPolicy: "retry",
  priorityRatio: 4,
  prefetch: "auto",
  logger: silentLogger,
}) satisfies WorkerOptions;

/** Validated options; times in milliseconds. */
export interface ResolvedWorkerOptions<State> {
  readonly state: State;
  readonly concurrency: number;
  readonly pollMaxMs: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly workerTimeoutMs: number;
  readonly shutdownTimeoutMs: number;
  readonly backoff: Backoff;
  readonly jitterFraction: number;
  readonly backstop: number | null;
  readonly panicPolicy: PanicPolicy;
  readonly priorityRatio: number | null;
  readonly prefetch: Prefetch;
  readonly name: string;
  readonly logger: Logger;
}

const leastPollMs = 1;
const leastHeartbeatMs = 100;
const leastWorkerTimeoutMs = 300;
const maxNameLength = 200;

type Known = Exclude<keyof WorkerOptions, "state" | "concurrency" | "name">;
const defaults: { readonly [Name in Known]-?: Exclude<WorkerOptions[Name], undefined> } =
  DEFAULT_WORKER_OPTIONS;
const known = ["state", "concurrency", "name", ...Object.keys(defaults)];

/** Validates options and fills in defaults; throws `invalid-argument` naming the option. */
export function resolveWorkerOptions<State>(
  options: WorkerOptions<State> = {},
): ResolvedWorkerOptions<State> {
  return readArgument("options", () => checkOptions(options));
}

function checkOptions<State>(options: WorkerOptions<State>): ResolvedWorkerOptions<State> {
  checkMembers("options", options, known, "a worker");
  const pick = <Name extends Known>(name: Name): (typeof defaults)[Name] => {
    const given = (options as WorkerOptions)[name];
    return given === undefined ? defaults[name] : (given as (typeof defaults)[Name]);
  };
  const duration = (name: Known, leastMs: number): number =>
    Math.max(durationMs(pick(name), name), leastMs);
  return {
    state: options.state as State,
    concurrency:
      options.concurrency === undefined
        ? defaultConcurrency()
        : toCount(options.concurrency, "concurrency"),
    pollMaxMs: duration("pollMax", leastPollMs),
    leaseMs: toLeaseMs(pick("lease"), "lease"),
    heartbeatMs: duration("heartbeat", leastHeartbeatMs),
    workerTimeoutMs: duration("workerTimeout", leastWorkerTimeoutMs),
    shutdownTimeoutMs: duration("shutdownTimeout", 0),
    backoff: toBackoff(pick("backoff")),
    jitterFraction: toFraction(pick("jitterFraction")),
    backstop: toCountOrNull(pick("backstop"), "backstop", "null for no limit"),
    panicPolicy: toPanicPolicy(pick("panicPolicy")),
    priorityRatio: toCountOrNull(
      pick("priorityRatio"),
      "priorityRatio",
      "null for strict priority",
    ),
    prefetch: toPrefetch(pick("prefetch")),
    name: options.name === undefined ? uniqueName() : toName(options.name),
    logger: toLogger(pick("logger")),
  };
}

function defaultConcurrency(): number {
  return Math.max(1, Math.min(8, Math.floor(availableParallelism() / 2)));
}

/** A name that differs from every other worker's, even where host names and process ids repeat, as in containers. */
function uniqueName(): string {
  return `${hostname() || "unknown"}:${process.pid}:${randomBytes(4).toString("hex")}`;
}

/** More at once brings nothing, and all of it has to be handed back at a stop. */
const mostPrefetch = 10_000;

function toFraction(value: unknown): number {
  if (typeof value === "number" && !Number.isNaN(value)) return Math.min(Math.max(value, 0), 1);
  throw invalidArgument(
    "jitterFraction",
    `is not a number (got ${show(value)})`,
    "pass a number from 0 to 1",
  );
}

function toBackoff(value: unknown): Backoff {
  if (isBackoff(value)) return value;
  throw invalidArgument(
    "backoff",
    `is not a Backoff (got ${show(value)})`,
    "pass new Backoff({ base, cap })",
  );
}

function toPanicPolicy(value: unknown): PanicPolicy {
  if (value === "retry" || value === "dead") return value;
  throw invalidArgument("panicPolicy", `is ${show(value)}`, 'pass "retry" or "dead"');
}

function toPrefetch(value: unknown): Prefetch {
  if (value === "auto" || value === 0 || (isCount(value) && value <= mostPrefetch)) return value;
  throw invalidArgument(
    "prefetch",
    `is ${show(value)}`,
    `pass "auto" or a whole number from 0 to ${mostPrefetch}`,
  );
}

function toName(value: unknown): string {
  if (typeof value !== "string" || value.trim() === "") {
    throw invalidArgument(
      "name",
      `is not a name (got ${show(value)})`,
      "pass text that says which worker this is",
    );
  }
  if (value.length > maxNameLength || cleanText(value, maxNameLength) !== value) {
    throw invalidArgument(
      "name",
      "is too long, or contains U+0000 or half of a surrogate pair",
      `pass text of at most ${maxNameLength} characters`,
    );
  }
  return value;
}
