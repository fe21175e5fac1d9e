import {
  type ClaimedJob,
  defineTask,
  type EnqueueRequest,
  type ProducerStore,
  type SettleRequest,
  silentLogger,
  type WorkerStore,
} from "../../../packages/core/src/index.ts";
import type { EnqueueLane } from "../../../packages/queue/src/enqueue-lane.ts";
import { enqueueStarted } from "../../../packages/queue/src/events.ts";
import { Queue } from "../../../packages/queue/src/index.ts";
import { systemClock } from "../../../packages/worker/src/clock.ts";
import { WorkerEvents } from "../../../packages/worker/src/events.ts";
import { Worker } from "../../../packages/worker/src/index.ts";
import type { RunContext } from "../../../packages/worker/src/job-context.ts";
import type { Run } from "../../../packages/worker/src/run.ts";

const schema = {
  "~standard": {
    version: 1,
    vendor: "proof",
    validate: (value: unknown) => ({ value: value as { readonly n: number } }),
  },
} as const;
const Task = defineTask({ kind: "nothing", payload: schema });

/** A store that accepts everything and has as many jobs as it is told, at no cost. */
function emptyStore(jobs: number): ProducerStore & WorkerStore {
  const leaseExpiresAt = new Date(Date.now() + 3_600_000);
  let left = jobs;
  const next = (): ClaimedJob => ({
    id: String(left).padStart(26, "0"),
    kind: Task.kind,
    priority: "normal",
    payload: '{"n":1}',
    carry: null,
    headers: null,
    runCount: 1,
    failureCount: 0,
    latencyMs: 0,
    leaseMs: 3_600_000,
    leaseExpiresAt,
  });
  return {
    portVersion: 1,
    capabilities: { transactions: false, notifications: false },
    enqueue: async (request: EnqueueRequest) => ({
      jobs: request.jobs.map(({ id }) => ({ id, outcome: "enqueued" as const })),
    }),
    findCandidates: async () => ({ candidates: [] }),
    startWorker: async () => ({ worker: 1 }),
    stopWorker: async () => undefined,
    claim: async ({ limit }) => {
      const claimed: ClaimedJob[] = [];
      for (; claimed.length < limit && left > 0; left -= 1) claimed.push(next());
      return { jobs: claimed, waitMs: null, blocked: false };
    },
    settle: async ({ settlements }: SettleRequest) => ({
      verdicts: settlements.map(() => "applied" as const),
    }),
    handBack: async ({ claims }) => ({ verdicts: claims.map(() => "applied" as const) }),
    extendLease: async () => ({ results: [] }),
    beat: async () => ({ silent: [], nextSuspectMs: null, serverUpMs: 3_600_000 }),
    findStale: async () => ({ claims: [] }),
    recover: async () => ({ applied: [] }),
    readJournal: async () => ({ entries: [] }),
  };
}

/** Enqueues and runs that many jobs. */
export async function drive(jobs: number): Promise<void> {
  const store = emptyStore(jobs);
  const queue = new Queue(store);
  const worker = new Worker(store, { concurrency: 100, prefetch: 100 }).register(
    Task,
    () => undefined,
  );
  // One by one, as most jobs are: a call each, a thousand at once.
  for (let from = 0; from < jobs; from += 1_000) {
    const calls: Promise<string>[] = [];
    for (let n = from; n < Math.min(jobs, from + 1_000); n += 1)
      calls.push(queue.enqueue(Task({ n })));
    await Promise.all(calls);
  }
  await worker.runOnce();
}

/** What the calls about one job take, in nanoseconds. */
export function callsAlone(times: number): number {
  const events = new WorkerEvents({ worker: "proof", clock: systemClock, logger: silentLogger });
  const registration = { handler: () => undefined };
  const run = { registration, payload: null, job: { failureCount: 0 } } as unknown as Run;
  const context = {} as RunContext;
  const lane = {} as EnqueueLane;
  const batch = { jobs: [], sentAt: 0, receivedAt: 0, startsAfterNext: false };
  const result = { type: "completed", note: null } as const;
  let told = 0;
  const startedAt = performance.now();
  for (let time = 0; time < times; time += 1) {
    if (enqueueStarted([], lane, false) !== null) told += 1;
    events.claimed(batch);
    if (events.callHandler(run, context, undefined) !== undefined) told += 1;
    events.ended(run, result);
    events.settled(run, "completed");
  }
  const took = ((performance.now() - startedAt) * 1e6) / times;
  if (told > 0) throw new Error("someone listens");
  return took;
}
