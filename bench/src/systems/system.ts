import type pg from "pg";

/** What every job carries: its number, by which lost and doubled jobs are found, and padding. */
export interface Payload {
  readonly id: number;
  readonly pad: string;
}

/** A payload of about the size asked for, as JSON. */
export function payload(id: number, bytes: number): Payload {
  return { id, pad: "x".repeat(Math.max(0, bytes - 18)) };
}

/** `best`: what its documentation says about throughput. `defaults`: nothing but the concurrency. */
export type Variant = "best" | "defaults";

/** Settings as the report shows them. */
export type Settings = Readonly<Record<string, string | number | boolean | null>>;

/** Enqueues, by the public API of the system. */
export interface Producer {
  add(payload: Payload): Promise<unknown>;
  addMany(payloads: readonly Payload[]): Promise<unknown>;
  /** Inside a transaction of the caller's; left out by systems that cannot. */
  addWithin?(client: pg.ClientBase, payload: Payload): Promise<unknown>;
  close(): Promise<void>;
}

export interface WorkRequest {
  readonly url: string;
  readonly variant: Variant;
  readonly concurrency: number;
  /** How many kinds of jobs the worker registers, where the system counts them; jobs are of the first. */
  readonly kinds: number;
  readonly handle: (id: number) => void | Promise<void>;
}

export interface RunningWorker {
  /** Resolves when no handler runs and everything that was done is written down. */
  stop(): Promise<void>;
  /** Gives up the connections that outlive the stop. */
  close(): Promise<void>;
}

/** One queue under test. All of it runs in processes of its own. */
export interface System {
  /** Makes the tables. */
  prepare(url: string): Promise<void>;
  produce(url: string, variant: Variant): Promise<Producer>;
  /** Producers over the same connections that do not share statements; left out where none ever does. */
  produceApart?(url: string, count: number): Promise<Producer[]>;
  work(request: WorkRequest): Promise<RunningWorker>;
  settings(variant: Variant, concurrency: number): Settings;
}
