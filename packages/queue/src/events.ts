import { channel } from "node:diagnostics_channel";
import {
  describeFailure,
  type EnqueueCall,
  type EnqueuedJob,
  type EnqueueEvent,
  type Headers,
  toHeaders,
} from "@venturi/core";
import type { EnqueueLane } from "./enqueue-lane.ts";
import type { QueuedJob } from "./merging.ts";

const enqueues = channel("venturi:enqueue");

/** Tells of a call that enqueues these jobs; null, and nothing is made, while nobody listens. */
export function enqueueStarted(
  jobs: readonly QueuedJob[],
  lane: EnqueueLane,
  isBatch: boolean,
): WatchedCall | null {
  return enqueues.hasSubscribers ? new WatchedCall(jobs, lane, isBatch) : null;
}

/** A call that someone listens to. */
export class WatchedCall {
  /** What to send: the jobs with whatever headers listeners added. */
  readonly jobs: readonly QueuedJob[];
  readonly #call: EnqueueCall;
  readonly #startedAt = performance.now();

  constructor(jobs: readonly QueuedJob[], lane: EnqueueLane, isBatch: boolean) {
    this.#call = {
      jobs: jobs.map(({ id, kind, priority, headers }) => ({
        id,
        kind,
        priority,
        headers: Object.assign(Object.create(null), headers),
      })),
      isBatch,
      inTransaction: lane.isInTransaction,
    };
    this.#publish({ event: "start", call: this.#call });
    this.jobs = jobs.map((job, index) => withHeaders(job, this.#call.jobs[index]?.headers));
  }

  stored(stored: readonly EnqueuedJob[]): void {
    this.#publish({ event: "stored", call: this.#call, stored, durationMs: this.#durationMs() });
  }

  failed(error: unknown): void {
    const { name, code = null } = describeFailure(error).detail;
    const durationMs = this.#durationMs();
    this.#publish({ event: "failed", call: this.#call, error: { name, code }, durationMs });
  }

  /** Tells that the call has failed before it rejects. */
  rejecting(reject: (error: unknown) => void): (error: unknown) => void {
    return (error) => {
      this.failed(error);
      reject(error);
    };
  }

  #durationMs(): number {
    return performance.now() - this.#startedAt;
  }

  #publish(event: EnqueueEvent): void {
    enqueues.publish(event);
  }
}

/** What listeners made of the headers, unless no job can hold that: watching must not make a call fail. */
function withHeaders(job: QueuedJob, changed: Headers | undefined): QueuedJob {
  try {
    return { ...job, headers: toHeaders(changed) };
  } catch {
    return job;
  }
}
