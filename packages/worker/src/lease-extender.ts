import {
  abortReason,
  type ExtendLeaseResult,
  type Logger,
  VenturiError,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { Clock } from "./clock.ts";
import type { Run } from "./run.ts";
import { Trouble } from "./trouble.ts";
import { type ClaimWrite, VerdictQueue } from "./verdict-queue.ts";

/** Extends leases for running handlers, in batches, each until the store has answered or the lease has ended. */
export class LeaseExtender {
  readonly #options: LeaseExtenderOptions;
  readonly #queue: VerdictQueue<Extending>;
  readonly #pending = new Set<Extending>();

  constructor(options: LeaseExtenderOptions) {
    const { clock, logger } = options;
    this.#options = options;
    this.#queue = new VerdictQueue<Extending>({
      clock,
      trouble: new Trouble({ clock, logger, doing: "extend leases" }),
      send: (batch, signal) => this.#send(batch, signal),
      // A handler asked, and is told what it may act upon.
      isPatient: false,
      onVerdict: (extending) => this.#answered(extending),
      onRefused: (extending, error) => {
        this.#settle(extending, () => extending.reject(error));
        return "drop";
      },
      onDropped: (extending) => {
        const { id } = extending.run.job;
        const message = "the lease ended before the store could extend it";
        this.#settle(extending, () =>
          extending.reject(abortReason("lease-ended", message, { id })),
        );
      },
    });
  }

  /** Resolves with the new deadline; rejects with `claim-lost`, `lease-ended`, or what the store says. */
  extend(run: Run, leaseMs: number): Promise<Date> {
    return new Promise((resolve, reject) => {
      const until = run.overdueAt;
      const common = { run, leaseMs, resolve, reject, answer: null };
      const extending: Extending = { ...common, textLength: 0, until, tries: 0 };
      this.#pending.add(extending);
      this.#queue.add(extending);
    });
  }

  /** Sends nothing more, and rejects what still waits with `reason`. */
  stop(reason: VenturiError): void {
    this.#queue.abandon();
    for (const extending of [...this.#pending])
      this.#settle(extending, () => extending.reject(reason));
  }

  async #send(batch: readonly Extending[], signal: AbortSignal) {
    const { store, worker, clock } = this.#options;
    const extensions = batch.map(({ run, leaseMs }) => {
      const { id: jobId, runCount } = run.job;
      return { jobId, runCount, leaseMs };
    });
    const sentAt = clock.now();
    const { results } = await store.extendLease({ worker, extensions, signal });
    const receivedAt = clock.now();
    return batch.map((extending, index) => {
      const result = results[index] ?? { verdict: "lost" };
      extending.answer = { result, sentAt, receivedAt };
      return result.verdict;
    });
  }

  #answered(extending: Extending): void {
    const { run, answer } = extending;
    if (answer?.result.verdict === "applied") {
      const { leaseExpiresAt, leaseMs } = answer.result;
      const { sentAt, receivedAt } = answer;
      run.moveLease({ leaseExpiresAt, leaseMs, sentAt, receivedAt });
      this.#options.onExtended(run);
      this.#settle(extending, () => extending.resolve(leaseExpiresAt));
    } else {
      this.#options.onLost(run);
      this.#settle(extending, () => extending.reject(claimLost(run, "extend the lease of")));
    }
  }

  #settle(extending: Extending, settle: () => void): void {
    this.#pending.delete(extending);
    settle();
  }
}

interface Extending extends ClaimWrite {
  readonly run: Run;
  readonly leaseMs: number;
  readonly resolve: (deadline: Date) => void;
  readonly reject: (error: unknown) => void;
  /** What the store said, with the monotonic instants around it. */
  answer: { readonly result: ExtendLeaseResult; sentAt: number; receivedAt: number } | null;
}

export interface LeaseExtenderOptions {
  readonly store: Pick<WorkerStore, "extendLease">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The end of a run's lease has moved. */
  readonly onExtended: (run: Run) => void;
  /** The run no longer holds its claim. */
  readonly onLost: (run: Run) => void;
}

/** Says that something cannot be done for a run, since the run does not hold its claim. */
export function claimLost({ job }: Run, doing: string, why = "the claim is no longer held") {
  const { id, runCount } = job;
  return new VenturiError(
    "claim-lost",
    `could not ${doing} run ${runCount} of job ${id}: ${why}; stop, what this run comes to is not written`,
    { id },
  );
}
