import {
  type Backoff,
  decideSettlement,
  failureMessage,
  isPromise,
  type Logger,
  type RunResult,
  type Settlement,
  type SettlementPolicy,
  type StaleClaim,
} from "@venturi/core";
import { type Clock, settledWithin } from "./clock.ts";
import type { HandlerRegistry, RegisteredTask } from "./handler-registry.ts";
import type { Run } from "./run.ts";

/** How long a recovery waits for an asynchronous schema, in milliseconds: it may be one that never answers. */
const mostDecodingMs = 1_000;

export interface PolicyOptions {
  readonly clock: Clock;
  readonly registry: HandlerRegistry;
  readonly backoff: Backoff;
  readonly jitterFraction: number;
  readonly logger: Logger;
}

type Failed = Extract<RunResult, { readonly type: "failed" }>;

/** Applies a task's policy, or the worker's, to what its runs came to. Nothing here throws, whatever a task's hooks do. */
export class Policy {
  readonly #options: PolicyOptions;
  /** For runs that have not failed, of which nothing of it is asked. */
  readonly #any: SettlementPolicy;

  constructor(options: PolicyOptions) {
    const { backoff, jitterFraction } = options;
    this.#options = options;
    this.#any = { backoff, jitterFraction, backstop: null };
  }

  /** What is written at the end of a run. */
  settlement(run: Run, result: RunResult): Settlement {
    return decideSettlement(
      run,
      result,
      result.type === "failed" ? this.#of(run, result) : this.#any,
    );
  }

  #of({ registration, payload }: Run, { permanent, afterMs }: Failed): SettlementPolicy {
    const { jitterFraction, backoff } = this.#options;
    const { task, backstop } = registration;
    const isAsked = !permanent && afterMs === null;
    return { backoff: isAsked ? this.#backoff(task, payload) : backoff, jitterFraction, backstop };
  }

  /** What is written instead of a settlement that the store refuses: a failure, with nothing in it that could be the reason. */
  refused(run: Run, note: string): Settlement {
    const failed = { permanent: false, afterMs: null, discardCarry: true, detail: null };
    const settlement = this.settlement(run, { type: "failed", note, ...failed });
    return { ...settlement, note, attachment: null };
  }

  /** The backoff for a claim that is being recovered. */
  async recoveryBackoff({ kind, payload }: StaleClaim): Promise<Backoff> {
    const task = this.#options.registry.get(kind)?.task;
    if (task === undefined) return this.#options.backoff;
    try {
      const decoding = task.decodePayload(payload);
      if (!isPromise(decoding)) return this.#backoff(task, decoding);
      const isDecoded = await settledWithin(this.#options.clock, mostDecodingMs, decoding);
      return isDecoded ? this.#backoff(task, await decoding) : this.#options.backoff;
    } catch {
      // It does not decode, which is for the run that meets it to say.
      return this.#options.backoff;
    }
  }

  #backoff(task: RegisteredTask, payload: unknown): Backoff {
    try {
      return task.backoffFor(payload) ?? this.#options.backoff;
    } catch (error) {
      this.#options.logger.warn("a task's backoff failed; the worker's is used", {
        kind: task.kind,
        error: failureMessage(error),
      });
      return this.#options.backoff;
    }
  }
}
