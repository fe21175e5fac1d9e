import { PostgresStore } from "@venturi/store-postgres";
import { DatabaseMeter } from "./database-meter.ts";
import { median } from "./figures.ts";

/** What claims read, one by one. */
export interface ClaimCosts {
  readonly claims: number;
  /** Buffers of the claim in the middle, marked as nearly all are. */
  readonly medianBuffers: number;
  /** Buffers of the dearest claim: one that starts from the beginning, as one in a second does. */
  readonly mostBuffers: number;
  readonly jobsPerClaim: number;
}

export interface ClaimCostRequest {
  readonly url: string;
  readonly kinds: readonly string[];
  readonly claims: number;
  readonly limit: number;
}

/**
 * Claims and settles as a worker does, by the port that every store has, and reads after each claim how many buffers
 * its statements hit or read. Averages would hide the claim a second that looks at everything.
 */
export async function claimCosts(request: ClaimCostRequest): Promise<ClaimCosts> {
  const { url, kinds, claims, limit } = request;
  const meter = await DatabaseMeter.open(url);
  const store = await PostgresStore.connect({ connectionString: url });
  const leaseMs = 900_000;
  const { worker } = await store.startWorker({
    name: "bench",
    kinds,
    pollMaxMs: 30_000,
    workerTimeoutMs: 1_000_000,
    shortestLeaseMs: leaseMs,
  });
  const asked = kinds.map((kind) => ({ kind, limit, leaseMs, backstop: 20 }));
  const buffers: number[] = [];
  let jobs = 0;
  for (let claim = 0; claim < claims; claim += 1) {
    const before = await meter.buffers();
    const claimed = await store.claim({
      worker,
      limit,
      kinds: asked,
      turn: { counter: jobs, ratio: 4 },
    });
    buffers.push((await meter.buffers()) - before);
    jobs += claimed.jobs.length;
    if (claimed.jobs.length < limit) throw new Error(`claim ${claim} came back short`);
    await store.settle({
      worker,
      settlements: claimed.jobs.map(({ id, runCount }) => ({
        jobId: id,
        runCount,
        outcome: "completed",
        delayMs: 0,
        runAt: null,
        carry: null,
        note: null,
        attachment: null,
        detail: null,
      })),
    });
  }
  await store.stopWorker({ worker });
  await store.close();
  await meter.close();
  return {
    claims,
    medianBuffers: median(buffers),
    mostBuffers: Math.max(...buffers),
    jobsPerClaim: jobs / claims,
  };
}
