import {
  type ClaimedJob,
  type ClaimRef,
  type JobId,
  type Logger,
  readDatabaseFault,
  type SettleVerdict,
  type WorkerId,
  type WorkerStore,
} from "@venturi/core";
import type { Clock } from "./clock.ts";
import { Trouble } from "./trouble.ts";
import { type ClaimWrite, VerdictQueue } from "./verdict-queue.ts";

/** A claim whose handler never started. */
export interface UnstartedClaim {
  readonly jobId: JobId;
  readonly runCount: number;
  /** Null where the claim's answer was lost, so that nobody was told of it. */
  readonly kind: string | null;
  /** When the claim ends by the store's clock: it tells this claim from a later one of the same run count. */
  readonly leaseExpiresAt: Date | undefined;
  /** Monotonic instant after which recovery takes over. */
  readonly leaseEndsAt: number;
}

/** A job that was claimed and does not start. */
export function toUnstarted(job: ClaimedJob, leaseEndsAt: number): UnstartedClaim {
  const { id, runCount, kind, leaseExpiresAt } = job;
  return { jobId: id, runCount, kind, leaseExpiresAt, leaseEndsAt };
}

interface HandingBack extends ClaimWrite, UnstartedClaim {}

export interface HandBackOptions {
  readonly store: Pick<WorkerStore, "handBack">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The claim is undone, or (`lost`) was lost before: the job may be claimed again. */
  readonly onHandedBack: (claim: UnstartedClaim, verdict: SettleVerdict) => void;
  /** Could not be undone before the lease ended. */
  readonly onDropped: (claim: UnstartedClaim) => void;
}

/** Undoes claims whose handler never started, until the store has confirmed each or its lease has ended. */
export class HandBack {
  readonly #queue: VerdictQueue<HandingBack>;
  /** One job may have several: an old one that nobody has answered, and one that was claimed since. */
  readonly #claims = new Set<UnstartedClaim>();

  constructor(options: HandBackOptions) {
    const { store, worker, clock, logger } = options;
    this.#queue = new VerdictQueue<HandingBack>({
      clock,
      trouble: new Trouble({ clock, logger, doing: "hand back claims" }),
      send: async (batch, signal) => {
        const claims = batch.map(({ jobId, runCount, leaseExpiresAt }) => ({
          jobId,
          runCount,
          leaseExpiresAt,
        }));
        return (await store.handBack({ worker, claims, signal })).verdicts;
      },
      // Lost: an earlier try went through although its answer did not, or the claim has been recovered.
      onVerdict: (claim, verdict) => {
        this.#claims.delete(claim);
        options.onHandedBack(claim, verdict);
      },
      onRefused: ({ jobId, runCount }, error) => {
        const { message } = readDatabaseFault(error);
        logger.error("the store refuses to take a claim back", { jobId, runCount, error: message });
        return "again";
      },
      onDropped: (claim) => {
        this.#claims.delete(claim);
        options.onDropped(claim);
      },
    });
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Jobs whose claims are being undone: they are not to be claimed before that is over. */
  jobIds(): JobId[] {
    return [...new Set([...this.#claims].map(({ jobId }) => jobId))];
  }

  /** Whether this claim is being undone. */
  isUndoing({ jobId, runCount }: ClaimRef): boolean {
    return [...this.#claims].some((claim) => claim.jobId === jobId && claim.runCount === runCount);
  }

  handBack(claim: UnstartedClaim): void {
    const item = { ...claim, textLength: 0, until: claim.leaseEndsAt, tries: 0 };
    this.#claims.add(item);
    this.#queue.add(item);
  }

  /** Resolves when every claim is handed back or given up. */
  empty(): Promise<void> {
    return this.#queue.empty();
  }

  abandon(): void {
    this.#queue.abandon();
  }
}
