import {
  failureMessage,
  isPromise,
  type Logger,
  type MaybePromise,
  type RunResult,
  type VenturiError,
} from "@venturi/core";
import type { WorkerEvents } from "./events.ts";
import { type ContextServices, RunContext } from "./job-context.ts";
import type { PanicPolicy } from "./options.ts";
import type { Run } from "./run.ts";
import { isAbort, resultOfReturn, resultOfThrow, uncommitted, undecodable } from "./run-result.ts";

export interface HandlerCallerOptions {
  readonly services: ContextServices;
  readonly logger: Logger;
  readonly events: Pick<WorkerEvents, "callHandler">;
  /** How a defect settles. */
  readonly panicPolicy: PanicPolicy;
  /** The third argument of every handler. */
  readonly state: unknown;
  /** The handler has ended, or what it was to be given does not decode. */
  readonly onEnd: (run: Run, result: RunResult) => void;
  /** While the payload or the carry was being decoded, the worker was told to stop: the handler is not called. */
  readonly onUncalled: (run: Run) => void;
}

/**
 * Decodes what a run is given, calls its handler, and says what the run came to. Nothing that a handler does or throws
 * gets past it.
 */
export class HandlerCaller {
  readonly #options: HandlerCallerOptions;
  #shutdown: VenturiError | null = null;

  constructor(options: HandlerCallerOptions) {
    this.#options = options;
  }

  /** The worker was told to stop, for this reason: no further handler is called. */
  stop(reason: VenturiError): void {
    this.#shutdown = reason;
  }

  /** Calls the handler of a run at once, unless what it is given has to be waited for. */
  call(run: Run): void {
    const { task } = run.registration;
    let payload: MaybePromise<unknown>;
    let carry: MaybePromise<unknown>;
    try {
      payload = task.decodePayload(run.job.payload);
      carry = isPromise(payload)
        ? payload.then(() => task.decodeCarry(run.job.carry))
        : task.decodeCarry(run.job.carry);
    } catch (error) {
      this.#options.onEnd(run, undecodable(error));
      return;
    }
    // Synchronous schemas, as most are, cost no iteration of the event loop.
    if (isPromise(carry)) void this.#decodeLater(run, payload, carry);
    else this.#call(run, payload, carry);
  }

  async #decodeLater(run: Run, payload: unknown, carry: unknown): Promise<void> {
    let decoded: readonly [unknown, unknown];
    try {
      decoded = await Promise.all([payload, carry]);
    } catch (error) {
      this.#options.onEnd(run, undecodable(error));
      return;
    }
    this.#callUnlessStopped(run, ...decoded);
  }

  #callUnlessStopped(run: Run, payload: unknown, carry: unknown): void {
    if (this.#shutdown === null) this.#call(run, payload, carry);
    else this.#options.onUncalled(run);
  }

  #call(run: Run, payload: unknown, carry: unknown): void {
    const { services, state, events } = this.#options;
    const context = new RunContext(run, carry, services);
    run.context = context;
    run.payload = payload;
    try {
      const returned: unknown = events.callHandler(run, context, state);
      if (returned === undefined) {
        this.#returned(run, undefined);
      } else if (isPromise(returned)) {
        // A thenable of another making may call back twice or throw; a promise of our own does not.
        Promise.resolve(returned).then(
          (value: unknown) => this.#returned(run, value),
          (error: unknown) => this.#threw(run, error),
        );
      } else {
        this.#returned(run, returned);
      }
    } catch (error) {
      this.#threw(run, error);
    }
  }

  #returned(run: Run, returned: unknown): void {
    const result = resultOfReturn(returned);
    if (result === null) this.#warnOfResult(run);
    if (run.completion === "written") {
      // Its own entry is found when this is settled, unless the transaction did not commit.
      if (result?.type === "paused") run.afterthought = "returned a pause";
      this.#options.onEnd(run, uncommitted);
      return;
    }
    this.#options.onEnd(run, result ?? { type: "completed", note: null });
  }

  #threw(run: Run, error: unknown): void {
    if (run.completion === "written") run.afterthought = `threw: ${failureMessage(error)}`;
    if (this.#shutdown !== null && isAbort(error, run.abortReason ?? this.#shutdown)) {
      this.#options.onEnd(run, {
        type: "released",
        note: "stopped because the worker is shutting down",
      });
    } else {
      this.#options.onEnd(run, resultOfThrow(error, this.#options.panicPolicy));
    }
  }

  #warnOfResult({ registration, job }: Run): void {
    if (registration.hasWarnedOfResult) return;
    registration.hasWarnedOfResult = true;
    this.#options.logger.warn(
      "a handler returned something that is no outcome, which counts as completed: return an Outcome or nothing",
      { kind: job.kind, jobId: job.id },
    );
  }
}
