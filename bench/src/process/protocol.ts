import type { SystemName } from "../systems/names.ts";
import type { Settings, Variant } from "../systems/system.ts";

/** Times are milliseconds of the machine's monotonic clock, which all processes share. */
export interface Span {
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface Batch {
  /** Number of the first job. */
  readonly first: number;
  readonly jobs: number;
  /** About the size of each payload. */
  readonly bytes: number;
}

export interface FeedRequest {
  readonly first: number;
  readonly bytes: number;
  /** Jobs that wait already. */
  readonly waiting: number;
  /** Jobs that are to wait at any time. */
  readonly depth: number;
}

export interface RateRequest extends Batch {
  readonly perSecond: number;
  /** Jobs of each call: 1 calls the enqueue of one job. */
  readonly perCall: number;
}

/** How enqueues are made: one after another, by callers at once, in batches, each in a transaction of its caller's. */
type EnqueueMode = "one" | "callers" | "many" | "transaction";

export interface EnqueueRequest extends Batch {
  readonly mode: EnqueueMode;
  readonly callers: number;
  /** A producer for each caller, so that nobody can share a statement with anybody. */
  readonly apart: boolean;
}

/** When each job's enqueue was called and when it returned, by the order of jobs. */
export interface EnqueueTimes {
  readonly calledAt: Float64Array;
  readonly returnedAt: Float64Array;
}

export interface WorkOptions {
  readonly variant: Variant;
  readonly concurrency: number;
  /** What a handler waits for, in milliseconds of setTimeout; null: it does nothing. */
  readonly timerMs: number | null;
  readonly kinds?: number;
}

export interface WorkResult {
  readonly startedAt: number;
  readonly stopAskedAt: number;
  readonly stoppedAt: number;
  /** Numbers of the jobs handled, in the order of the ends of their handlers, with the times of these. */
  readonly ids: Int32Array;
  readonly times: Float64Array;
  /** CPU time of the process from start to stop, in microseconds. */
  readonly cpuMicros: number;
}

/** What a process of one system does when asked. */
export interface Verbs {
  settings(request: { variant: Variant; concurrency: number }): Promise<Settings>;
  prepare(): Promise<void>;
  openProducer(request: { variant: Variant }): Promise<void>;
  closeProducer(): Promise<void>;
  /** Enqueues in batches of 1,000. */
  fill(batch: Batch): Promise<Span>;
  /** Keeps a number of jobs waiting until told to end; learns of those that were handled by `consumed`. */
  feed(request: FeedRequest): Promise<void>;
  consumed(handled: number): Promise<void>;
  /** Returns how many jobs were enqueued. */
  endFeed(): Promise<number>;
  /** Enqueues at a rate, whether or not earlier calls have returned. */
  produceAtRate(request: RateRequest): Promise<EnqueueTimes>;
  enqueue(request: EnqueueRequest): Promise<Span>;
  startWorker(options: WorkOptions): Promise<{ startedAt: number; endedAt: number }>;
  stopWorker(): Promise<WorkResult>;
  /** As many loops awaiting setTimeout, with no queue: their turns per second. */
  timerLoops(request: { loops: number; timerMs: number; ms: number }): Promise<number>;
  memory(): Promise<{ rssBytes: number }>;
}

export type Verb = keyof Verbs;

export interface ProcessTarget {
  readonly system: SystemName;
  readonly url: string;
}

export interface Request {
  readonly call: number;
  readonly verb: Verb;
  readonly argument: unknown;
}

/** An answer, or how many jobs have been handled so far. */
export type Message =
  | { readonly call: number; readonly result: unknown }
  | { readonly call: number; readonly error: string }
  | { readonly handled: number };
