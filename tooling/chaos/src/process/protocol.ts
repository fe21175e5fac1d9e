/** How a worker process is set up. */
export interface WorkerSetup {
  readonly url: string;
  /** Where it listens, if not there. */
  readonly listenUrl?: string;
  /** Where handlers write, if not there. */
  readonly applicationUrl?: string;
  readonly listen?: boolean;
  readonly preparedStatements?: boolean;
  /** The file that tells what its handlers did. */
  readonly file: string;
  readonly name: string;
  readonly connections: number;
  readonly options: WorkerSettings;
}

/** The options of a worker that differ between scenarios; times in milliseconds. */
export interface WorkerSettings {
  readonly concurrency: number;
  readonly prefetch: "auto" | number;
  readonly pollMax: number;
  readonly lease: number;
  readonly heartbeat: number;
  readonly workerTimeout: number;
  readonly shutdownTimeout: number;
}

export interface ProducerSetup {
  readonly url: string;
  readonly preparedStatements?: boolean;
  /** The file that tells what it enqueued. */
  readonly file: string;
  readonly seed: number;
  /** How long handlers take, in milliseconds. */
  readonly meanMs: number;
}

/** What a worker knows of itself when it has stopped. */
export interface WorkerReport {
  /** Jobs it could not let go of. */
  readonly unreleased: number;
  /** The most handlers of each kind that ran at once. */
  readonly peaks: Readonly<Record<string, number>>;
}

export interface ProducerReport {
  readonly accepted: number;
  /** Those of them that were merged into jobs that waited. */
  readonly merged: number;
  /** Enqueues that failed for good. */
  readonly failures: readonly string[];
}

interface Memory {
  readonly heapUsed: number;
  readonly rss: number;
}

/** What a process of the harness does when asked. */
export interface Verbs {
  migrate(request: { readonly url: string }): Promise<void>;
  startWorker(setup: WorkerSetup): Promise<void>;
  stopWorker(): Promise<WorkerReport>;
  openProducer(setup: ProducerSetup): Promise<void>;
  /** Enqueues so many jobs in large batches. */
  fill(request: { readonly count: number }): Promise<void>;
  /** Enqueues at a steady rate from now on, whatever becomes of earlier calls. */
  produce(request: { readonly perSecond: number }): Promise<void>;
  /** Enqueues no more, and resolves when all that was tried has been accepted. */
  endProduction(): Promise<ProducerReport>;
  /** Keeps the event loop busy. */
  block(request: { readonly ms: number }): Promise<void>;
  /** Deletes jobs that ended so long ago, in milliseconds; returns how many. */
  cleanUp(request: { readonly url: string; readonly olderThanMs: number }): Promise<number>;
  configure(request: { readonly url: string; readonly notify: boolean }): Promise<void>;
  /** Runs the contract of stores on an empty migrated database, through a pooler and straight. */
  contract(request: {
    readonly url: string;
    readonly directUrl: string;
    readonly listens: boolean;
  }): Promise<{ readonly passed: number; readonly failures: readonly string[] }>;
  /** After a garbage collection. */
  memory(): Promise<Memory>;
}

export type Verb = keyof Verbs;

export interface Request {
  readonly call: number;
  readonly verb: Verb;
  readonly argument: unknown;
}

export type Message =
  | { readonly call: number; readonly result?: unknown }
  | { readonly call: number; readonly error: string };

/** What a process is told when it starts. */
export interface ActorTraits {
  /** How far its wall clock is off, in milliseconds. */
  readonly clockSkewMs: number;
}
