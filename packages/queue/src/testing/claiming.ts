import type { Settlement, SettlementOutcome } from "@venturi/core";
import type { PostgresStore } from "@venturi/store-postgres";

/** What a claim of a test holds. */
export interface Held {
  readonly ids: readonly string[];
  settle(outcome: SettlementOutcome, changes?: Partial<Settlement>): Promise<void>;
}

/** Claims all due jobs of a kind and, where an outcome is given, settles them: a worker without its loops. */
export async function claimer(store: PostgresStore, name = "claimer") {
  const { worker } = await store.startWorker({
    name,
    kinds: [],
    pollMaxMs: 60_000,
    workerTimeoutMs: 600_000,
    shortestLeaseMs: 600_000,
  });
  return async (
    kind: string,
    outcome?: SettlementOutcome,
    changes: Partial<Settlement> = {},
  ): Promise<Held> => {
    const { jobs } = await store.claim({
      worker,
      limit: 1_000,
      kinds: [{ kind, limit: 1_000, leaseMs: 600_000, backstop: 20 }],
      turn: { counter: 0, ratio: null },
    });
    const held: Held = {
      ids: jobs.map(({ id }) => id),
      async settle(ended, more = {}) {
        const settlements = jobs.map(
          ({ id, runCount }): Settlement => ({
            jobId: id,
            runCount,
            outcome: ended,
            delayMs: 0,
            runAt: null,
            carry: null,
            note: null,
            attachment: null,
            detail: null,
            ...more,
          }),
        );
        const { verdicts } = await store.settle({ worker, settlements });
        if (verdicts.some((verdict) => verdict !== "applied")) {
          throw new Error(`not settled: ${verdicts.join(", ")}`);
        }
      },
    };
    if (outcome !== undefined) await held.settle(outcome, changes);
    return held;
  };
}
