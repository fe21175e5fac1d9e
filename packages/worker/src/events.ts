import { channel } from "node:diagnostics_channel";
import type {
  ClaimEvent,
  ClaimedJob,
  ErrorSummary,
  FailureDetail,
  Logger,
  RecoverEvent,
  Recovery,
  RunEvent,
  RunFacts,
  RunResult,
  RunStartEvent,
  SettleEvent,
  SettlementOutcome,
  StaleClaim,
  WorkerEvent,
} from "@venturi/core";
import type { ClaimBatch } from "./claim-loop.ts";
import type { Clock } from "./clock.ts";
import type { UnstartedClaim } from "./hand-back.ts";
import type { RunContext } from "./job-context.ts";
import { headersOf, type Run } from "./run.ts";

const claims = channel("venturi:claim");
const runs = channel("venturi:run");
const settles = channel("venturi:settle");
const recoveries = channel("venturi:recover");
const workers = channel("venturi:worker");

export interface WorkerEventsOptions {
  /** The worker's name. */
  readonly worker: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Tells whoever listens what a worker session does. While nobody listens each call is one look at a boolean. What ended
 * for good without being completed is logged as well.
 */
export class WorkerEvents {
  readonly #worker: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** One object for each run that was told of, so that listeners can tell which messages belong together. */
  readonly #facts = new WeakMap<Run, RunFacts>();

  constructor({ worker, clock, logger }: WorkerEventsOptions) {
    this.#worker = worker;
    this.#clock = clock;
    this.#logger = logger;
  }

  started(kinds: readonly string[], concurrency: number): void {
    if (!workers.hasSubscribers) return;
    const event: WorkerEvent = { event: "started", worker: this.#worker, kinds, concurrency };
    workers.publish(event);
  }

  stopped(unreleased: number): void {
    if (!workers.hasSubscribers) return;
    const event: WorkerEvent = { event: "stopped", worker: this.#worker, unreleased };
    workers.publish(event);
  }

  claimed({ jobs, sentAt, receivedAt }: ClaimBatch): void {
    if (!claims.hasSubscribers) return;
    const event: ClaimEvent = {
      event: "claimed",
      worker: this.#worker,
      jobs: jobs.map((job) => ({ ...factsOf(job), latencyMs: job.latencyMs })),
      durationMs: receivedAt - sentAt,
    };
    claims.publish(event);
  }

  /** The store has undone a claim; not to be told of one whose claiming was not either. */
  handedBack({ jobId, runCount, kind }: UnstartedClaim): void {
    if (!claims.hasSubscribers || kind === null) return;
    const event: ClaimEvent = {
      event: "handed-back",
      worker: this.#worker,
      id: jobId,
      kind,
      runCount,
    };
    claims.publish(event);
  }

  /** Calls the handler of a run, inside of whatever contexts listeners bind. */
  callHandler(run: Run, context: RunContext, state: unknown): unknown {
    const { registration, payload } = run;
    if (!runs.hasSubscribers) return registration.handler(payload, context, state);
    return this.#callInside(run, () => registration.handler(payload, context, state));
  }

  /** A run has come to its end, and is about to be settled. */
  ended(run: Run, result: RunResult): void {
    if (!runs.hasSubscribers && !settles.hasSubscribers) return;
    // A straggler is ended while its handler goes on.
    if (!run.hasEnded) run.endedAt = this.#clock.now();
    if (!runs.hasSubscribers) return;
    // What is settled for a run that completed itself only counts if that was not committed.
    const type = run.completion === "written" ? "completed" : result.type;
    const event: RunEvent = {
      event: "end",
      worker: this.#worker,
      run: this.#factsOf(run),
      result: type,
      error: type === "failed" && result.type === "failed" ? toSummary(result.detail) : null,
      durationMs: run.endedAt - run.startedAt,
    };
    runs.publish(event);
  }

  /** The store has confirmed how a run ended. */
  settled(run: Run, outcome: SettlementOutcome): void {
    if (outcome === "dead") this.#logDead(run.job.id, run.job);
    if (!settles.hasSubscribers) return;
    const isFailure = outcome === "retried" || outcome === "dead";
    const attempt = isFailure ? run.job.failureCount + 1 : null;
    this.#settle({ event: "settled", ...this.#settling(run), outcome, attempt });
  }

  lost(run: Run): void {
    if (settles.hasSubscribers) this.#settle({ event: "lost", ...this.#settling(run) });
  }

  dropped(run: Run): void {
    if (settles.hasSubscribers) this.#settle({ event: "dropped", ...this.#settling(run) });
  }

  /** The store has confirmed that a stale claim was recovered. */
  recovered(claim: StaleClaim, to: Recovery): void {
    const { jobId, kind, runCount, failureCount, overdue } = claim;
    if (to.outcome === "dead") this.#logDead(jobId, claim);
    if (!recoveries.hasSubscribers) return;
    const event: RecoverEvent = {
      event: "recovered",
      worker: this.#worker,
      id: jobId,
      kind,
      runCount,
      outcome: to.outcome,
      attempt: failureCount + 1,
      reason: overdue ? "overdue" : "silent",
      delayMs: to.delayMs,
    };
    recoveries.publish(event);
  }

  /** Without the error's message, which may quote the payload: the journal has it. */
  #logDead(
    jobId: string,
    before: { readonly kind: string; readonly runCount: number; readonly failureCount: number },
  ): void {
    const { kind, runCount, failureCount } = before;
    this.#logger.warn("a job is dead", { kind, jobId, runCount, failureCount: failureCount + 1 });
  }

  #callInside(run: Run, handler: () => unknown): unknown {
    const event: RunStartEvent = {
      event: "start",
      worker: this.#worker,
      run: this.#factsOf(run),
      latencyMs: run.job.latencyMs + (this.#clock.now() - run.receivedAt),
      around: [],
    };
    let result: { readonly returned: unknown } | { readonly thrown: unknown } | null = null;
    // Whatever a listener does with it, the handler is called, and once.
    const call = (): void => {
      if (result !== null) return;
      try {
        result = { returned: handler() };
      } catch (thrown) {
        result = { thrown };
      }
    };
    try {
      runs.runStores(event, () => {
        let wrapped = call;
        for (const wrap of event.around) {
          const inner = wrapped;
          wrapped = () => wrap(inner);
        }
        wrapped();
      });
    } catch (error) {
      // As Node treats what a listener throws.
      queueMicrotask(() => {
        throw error;
      });
    }
    call();
    return unwrap(result);
  }

  #settling(run: Run) {
    const latencyMs = this.#clock.now() - run.endedAt;
    return { worker: this.#worker, run: this.#factsOf(run), latencyMs };
  }

  #settle(event: SettleEvent): void {
    settles.publish(event);
  }

  #factsOf(run: Run): RunFacts {
    let facts = this.#facts.get(run);
    if (facts === undefined) {
      facts = factsOf(run.job);
      this.#facts.set(run, facts);
    }
    return facts;
  }
}

function factsOf(job: ClaimedJob): RunFacts {
  const { id, kind, priority, runCount, failureCount } = job;
  return { id, kind, priority, headers: headersOf(job), runCount, failureCount };
}

function unwrap(
  result: { readonly returned: unknown } | { readonly thrown: unknown } | null,
): unknown {
  if (result === null) return undefined;
  if ("thrown" in result) throw result.thrown;
  return result.returned;
}

/** Of the detail that is written to the journal, what a message may hold. */
function toSummary(detail: string | null): ErrorSummary {
  if (detail === null) return { name: "Error", code: null };
  const failure: FailureDetail = JSON.parse(detail);
  return { name: failure.name, code: failure.code ?? null };
}
