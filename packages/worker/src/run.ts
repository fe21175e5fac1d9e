import {
  type ClaimedJob,
  encodeJson,
  type Headers,
  type JobId,
  type RunToSettle,
  type StaleClaim,
  type VenturiError,
  type WorkerId,
} from "@venturi/core";
import type { Registration } from "./handler-registry.ts";
import type { RunContext } from "./job-context.ts";
import type { Leased } from "./lease-keeper.ts";

const noHeaders: Headers = Object.freeze({});

/** The headers that a job was enqueued with; empty where there were none. */
export function headersOf({ headers }: ClaimedJob): Headers {
  return headers ?? noHeaders;
}

/** What a store said about a lease, with the monotonic instants around its answer. */
export interface LeaseAnswer {
  readonly leaseExpiresAt: Date;
  readonly leaseMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/**
 * Whether the handler has completed its run in a transaction of its own. `asked`: the store has not answered yet.
 * `written`: it has been written there; whether it is committed shows when the run is settled.
 */
export type Completion = "none" | "asked" | "written";

/** One claim that this worker holds, from the store's answer to the confirmed end of the run. */
export class Run implements Leased, RunToSettle {
  readonly job: ClaimedJob;
  readonly registration: Registration;
  /** Monotonic instant when the claim was sent. */
  readonly claimSentAt: number;
  /** Monotonic instant of the claim's answer. */
  readonly receivedAt: number;
  /** Monotonic instant when the handler was called. */
  startedAt = 0;
  /** Monotonic instant when the handler had ended. */
  endedAt = 0;
  /** Monotonic instant when the lease ends at the earliest: counted from before the claim was sent. */
  leaseEndsAt: number;
  /** Monotonic instant when the lease has ended for certain: counted from the claim's answer. */
  overdueAt: number;
  /** The lease in milliseconds, counted from the claim or from when it was extended last. */
  leaseMs: number;
  /** When the lease ends by the store's clock. */
  deadline: Date;
  /** The decoded payload, from the handler's start on. */
  payload: unknown;
  /** Null until the handler starts. */
  context: RunContext | null = null;
  /** Whether the handler has returned or thrown. */
  hasEnded = false;
  /** Whether the run was settled without waiting for its handler, whose result is then dropped. */
  isReleased = false;
  /** Whether the claim was found to be somebody else's, or nobody's, while the handler went on. */
  hasLostClaim = false;
  completion: Completion = "none";
  /** What the handler came to after it had completed its run, if that is more than a plain return. */
  afterthought: string | null = null;
  #abort: AbortController | null = null;
  #reason: VenturiError | null = null;
  #attachment: unknown;

  constructor(job: ClaimedJob, registration: Registration, sentAt: number, receivedAt: number) {
    this.job = job;
    this.registration = registration;
    this.claimSentAt = sentAt;
    this.receivedAt = receivedAt;
    this.leaseEndsAt = sentAt + job.leaseMs;
    this.overdueAt = receivedAt + job.leaseMs;
    this.leaseMs = job.leaseMs;
    this.deadline = job.leaseExpiresAt;
  }

  get jobId(): JobId {
    return this.job.id;
  }

  get runCount(): number {
    return this.job.runCount;
  }

  /** Before this run. */
  get failureCount(): number {
    return this.job.failureCount;
  }

  /** The lease has been extended: it ends that long after the store's answer was made. */
  moveLease({ leaseExpiresAt, leaseMs, sentAt, receivedAt }: LeaseAnswer): void {
    this.leaseMs = leaseMs;
    // What was known before holds as well: a lease is never shortened.
    this.leaseEndsAt = Math.max(this.leaseEndsAt, sentAt + leaseMs);
    this.overdueAt = receivedAt + leaseMs;
    this.deadline = leaseExpiresAt;
  }

  /** Made when the handler first asks for it, which most never do. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#reason !== null) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** Why the handler was told to come to an end; the first reason counts. */
  get abortReason(): VenturiError | null {
    return this.#reason;
  }

  abort(reason: VenturiError): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#abort?.abort(reason);
  }

  attach(value: unknown): void {
    this.#attachment = value;
  }

  /** This claim as recovery sees it once its lease has passed. */
  toStaleClaim(holder: WorkerId): StaleClaim {
    const { id: jobId, kind, payload, runCount, failureCount } = this.job;
    const { backstop } = this.registration;
    return { jobId, kind, payload, runCount, failureCount, backstop, holder, overdue: true };
  }

  encodeCarry(): string | null {
    return this.context === null ? null : this.registration.task.encodeCarry(this.context.carry);
  }

  encodeAttachment(): string | null {
    if (this.#attachment === undefined) return null;
    return encodeJson(this.#attachment, "attachment", this.job.kind);
  }
}
