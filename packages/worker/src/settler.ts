import {
  type Logger,
  readDatabaseFault,
  type Settlement,
  type SettlementOutcome,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { Clock } from "./clock.ts";
import type { Run } from "./run.ts";
import { Trouble } from "./trouble.ts";
import { type ClaimWrite, VerdictQueue } from "./verdict-queue.ts";

interface Settling extends ClaimWrite {
  readonly run: Run;
  readonly settlement: Settlement;
  /** Whether this replaces a settlement that the store refused. */
  readonly isReplacement: boolean;
}

export interface SettlerOptions {
  readonly store: Pick<WorkerStore, "settle">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What is written instead of a settlement that the store refuses. */
  readonly refuse: (run: Run, note: string) => Settlement;
  /** The store has confirmed the settlement. */
  readonly onSettled: (run: Run, outcome: SettlementOutcome) => void;
  /** The claim was no longer held; nothing was written. */
  readonly onLost: (run: Run) => void;
  /** Could not be written before the lease ended. */
  readonly onDropped: (run: Run) => void;
  readonly onProgress: () => void;
}

/** Writes how runs ended, in batches, until the store has confirmed each or its lease has ended. */
export class Settler {
  readonly #queue: VerdictQueue<Settling>;

  constructor(options: SettlerOptions) {
    const { store, worker, clock, logger } = options;
    const describe = ({ job }: Run) => ({ jobId: job.id, kind: job.kind, runCount: job.runCount });
    this.#queue = new VerdictQueue<Settling>({
      clock,
      trouble: new Trouble({ clock, logger, doing: "settle runs" }),
      send: async (batch, signal) => {
        const settlements = batch.map(({ settlement }) => settlement);
        return (await store.settle({ worker, settlements, signal })).verdicts;
      },
      onVerdict: ({ run, settlement }, verdict) => {
        if (verdict === "done" && run.completion === "written") {
          if (run.afterthought !== null) {
            logger.warn(
              "what a handler came to after ctx.complete does not count: the run is completed",
              {
                ...describe(run),
                result: run.afterthought,
              },
            );
          }
          options.onSettled(run, "completed");
          return;
        }
        if (verdict !== "lost") {
          options.onSettled(run, settlement.outcome);
          return;
        }
        logger.warn("a run no longer held its claim, so its end was not written", {
          ...describe(run),
          outcome: settlement.outcome,
        });
        options.onLost(run);
      },
      onRefused: ({ run, settlement, isReplacement }, error) => {
        const reason = readDatabaseFault(error).message;
        logger.error("the store refuses to settle a run", {
          ...describe(run),
          outcome: settlement.outcome,
          error: reason,
        });
        if (isReplacement) return "again";
        const note = `settled as ${settlement.outcome}, which the store refused: ${reason}`;
        return this.#settling(run, options.refuse(run, note), true);
      },
      onDropped: ({ run, settlement }) => {
        logger.error("a run could not be settled before its lease ended; it will be recovered", {
          ...describe(run),
          outcome: settlement.outcome,
        });
        options.onDropped(run);
      },
      onProgress: options.onProgress,
    });
  }

  /** Runs that ended and are not settled yet. */
  get size(): number {
    return this.#queue.size;
  }

  settle(run: Run, settlement: Settlement): void {
    this.#queue.add(this.#settling(run, settlement, false));
  }

  /** Resolves when nothing is left to settle. */
  empty(): Promise<void> {
    return this.#queue.empty();
  }

  /** Stops where it stands; what is not settled stays claimed. */
  abandon(): void {
    this.#queue.abandon();
  }

  #settling(run: Run, settlement: Settlement, isReplacement: boolean): Settling {
    const { carry, note, attachment, detail } = settlement;
    const textLength =
      (carry?.length ?? 0) +
      (note?.length ?? 0) +
      (attachment?.length ?? 0) +
      (detail?.length ?? 0);
    return { run, settlement, isReplacement, textLength, until: run.leaseEndsAt, tries: 0 };
  }
}
