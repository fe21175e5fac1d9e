import type { Headers } from "./headers.ts";
import type { JobId } from "./job-id.ts";
import type { Priority } from "./priority.ts";
import type { RunResult, SettlementOutcome } from "./settlement.ts";
import type { EnqueueOutcome } from "./store.ts";

/**
 * The messages that queues and workers publish with `node:diagnostics_channel`, by the channel's name. Nothing is published
 * while nobody listens. No message holds a payload, a carry, a dedup key, a note or the text of an error.
 *
 * @example
 * subscribe("venturi:settle", (message) => {
 *   const event = message as Events["venturi:settle"];
 * });
 */
export interface Events {
  readonly "venturi:enqueue": EnqueueEvent;
  readonly "venturi:claim": ClaimEvent;
  readonly "venturi:run": RunEvent;
  readonly "venturi:settle": SettleEvent;
  readonly "venturi:recover": RecoverEvent;
  readonly "venturi:worker": WorkerEvent;
}

/** As much of an error as a message may hold. */
export interface ErrorSummary {
  readonly name: string;
  readonly code: string | null;
}

// ── enqueueing ───────────────────────────────────────────────────────────────────────────────────

/** One call of `enqueue`, `enqueueAt` or `enqueueMany`. All messages about a call hold the same object. */
export interface EnqueueCall {
  readonly jobs: readonly JobToEnqueue[];
  /** Whether it is a call of `enqueueMany`. */
  readonly isBatch: boolean;
  /** Whether it is part of a transaction of its caller, which may be rolled back after the job has been stored. */
  readonly inTransaction: boolean;
}

export interface JobToEnqueue {
  readonly id: JobId;
  readonly kind: string;
  readonly priority: Priority;
  /**
   * The headers that the job is enqueued with. While `start` is published a listener may add to them, for example a trace
   * context. If they become too long by that, none of the additions are kept.
   */
  readonly headers: Record<string, string>;
}

export type EnqueueEvent =
  /** Nothing of the call has been sent. Published in the context of the caller. */
  | { readonly event: "start"; readonly call: EnqueueCall }
  /** The store has confirmed the call. Inside a transaction of the caller the jobs exist once that has committed. */
  | {
      readonly event: "stored";
      readonly call: EnqueueCall;
      /** What became of each job of the call, in order. */
      readonly stored: readonly {
        /** The job itself, or the pending one it was merged into. */
        readonly id: JobId;
        readonly outcome: EnqueueOutcome;
      }[];
      /** From the start, in milliseconds. */
      readonly durationMs: number;
    }
  /** The call has rejected. If its signal ended it after it had been sent, `stored` may still follow. */
  | {
      readonly event: "failed";
      readonly call: EnqueueCall;
      readonly error: ErrorSummary;
      /** From the start, in milliseconds. */
      readonly durationMs: number;
    };

// ── working ──────────────────────────────────────────────────────────────────────────────────────

/** One run of a job. All messages of `venturi:run` and `venturi:settle` about a run hold the same object. */
export interface RunFacts {
  readonly id: JobId;
  readonly kind: string;
  readonly priority: Priority;
  readonly headers: Headers;
  /** How often the job has been started, this run included. */
  readonly runCount: number;
  /** Failures before this run. */
  readonly failureCount: number;
}

export type ClaimEvent =
  /** The store has answered a claim that brought jobs. */
  | {
      readonly event: "claimed";
      /** The name of the worker. */
      readonly worker: string;
      readonly jobs: readonly (RunFacts & {
        /** From when the job was due until it was claimed, by the store's clock, in milliseconds. */
        readonly latencyMs: number;
      })[];
      /** What the claim took, in milliseconds. */
      readonly durationMs: number;
    }
  /** The store has undone a claim whose handler never started: the job is pending as if it had not been claimed. */
  | {
      readonly event: "handed-back";
      readonly worker: string;
      readonly id: JobId;
      readonly kind: string;
      readonly runCount: number;
    };

/** Calls `call`, once and at once, and returns what it returned. */
export type RunWrapper = <T>(call: () => T) => T;

export interface RunStartEvent {
  readonly event: "start";
  readonly worker: string;
  readonly run: RunFacts;
  /** From when the job was due until its handler was called, in milliseconds. */
  readonly latencyMs: number;
  /**
   * While `start` is published a listener may add functions here, inside of which the handler is then called. They are for
   * contexts that cannot be bound to the channel with `bindStore`.
   */
  readonly around: RunWrapper[];
}

export type RunEvent =
  /** The handler is about to be called. Published with `runStores`, so that bound stores are in effect inside the handler. */
  | RunStartEvent
  /** The run has ended, and nothing has been written yet. There was no `start` where the payload did not decode. */
  | {
      readonly event: "end";
      readonly worker: string;
      readonly run: RunFacts;
      /** How the handler ended. What becomes of the job is said by `venturi:settle`. */
      readonly result: RunResult["type"];
      /** What it threw; null where it did not fail. */
      readonly error: ErrorSummary | null;
      /** How long the handler took, in milliseconds. */
      readonly durationMs: number;
    };

/** What all messages of `venturi:settle` say. */
export interface SettleFacts {
  readonly worker: string;
  readonly run: RunFacts;
  /** From the end of the run until now, in milliseconds. */
  readonly latencyMs: number;
}

export type SettleEvent =
  /** The store has confirmed how the run ended. */
  | (SettleFacts & {
      readonly event: "settled";
      readonly outcome: SettlementOutcome;
      /** Which failure of the job this is, from 1; null where it is none. */
      readonly attempt: number | null;
    })
  /** The run no longer held its claim: nothing was written, someone else has the job. */
  | (SettleFacts & { readonly event: "lost" })
  /** The store could not be reached before the lease ended: the job will be recovered. */
  | (SettleFacts & { readonly event: "dropped" });

/** The store has confirmed that a stale claim was recovered. */
export interface RecoverEvent {
  readonly event: "recovered";
  /** The name of the worker that recovered it, not of the one that lost it. */
  readonly worker: string;
  readonly id: JobId;
  readonly kind: string;
  /** The run that was lost. */
  readonly runCount: number;
  readonly outcome: "stale-recovered" | "dead";
  /** Which failure of the job this is, from 1. */
  readonly attempt: number;
  /** Whether its lease had passed, or its worker had stopped beating. */
  readonly reason: "overdue" | "silent";
  /** Until the job is due again, in milliseconds. */
  readonly delayMs: number;
}

export type WorkerEvent =
  /** A session of the worker has begun. */
  | {
      readonly event: "started";
      readonly worker: string;
      readonly kinds: readonly string[];
      readonly concurrency: number;
    }
  /** It has ended: nothing of it runs any more, and nothing more is written. */
  | {
      readonly event: "stopped";
      readonly worker: string;
      /** How many jobs it could not release. */
      readonly unreleased: number;
    };
