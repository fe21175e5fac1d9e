import {
  type ClaimedJob,
  type ClaimKind,
  type ClaimRequest,
  createJobIds,
  type EnqueueJob,
  type JobId,
  type Settlement,
  type SettlementOutcome,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import { createNames } from "../names.ts";
import type { PostgresStore } from "../postgres-store.ts";

/** The names that a test's database is migrated under. */
export const names = createNames({ prefix: "venturi", schema: "public" });

export const newId = createJobIds({ now: Date.now, random: Math.random });

/** A job to enqueue. */
export function job(kind: string, changes: Partial<EnqueueJob> = {}): EnqueueJob {
  return { id: newId(), kind, payload: "{}", priority: "normal", ...changes };
}

/** Enqueues jobs and returns their ids, in order. */
export async function enqueue(
  store: PostgresStore,
  ...jobs: readonly EnqueueJob[]
): Promise<readonly JobId[]> {
  return (await store.enqueue({ jobs })).jobs.map(({ id }) => id);
}

/** How a worker presents itself unless a test says otherwise. */
export const registration: WorkerRegistration = {
  name: "worker",
  kinds: [],
  pollMaxMs: 5_000,
  workerTimeoutMs: 60_000,
  shortestLeaseMs: 900_000,
};

export async function startWorker(
  store: PostgresStore,
  changes: Partial<WorkerRegistration> = {},
): Promise<WorkerId> {
  return (await store.startWorker({ ...registration, ...changes })).worker;
}

/** A kind to claim, without a cap unless one is given. */
export function claimKind(kind: string, changes: Partial<ClaimKind> = {}): ClaimKind {
  return { kind, limit: 1_000, leaseMs: 900_000, backstop: 20, ...changes };
}

/** A claim in strict priority order of up to ten jobs, unless a test says otherwise. */
export function claimRequest(
  worker: WorkerId,
  kinds: readonly (string | ClaimKind)[],
  changes: Partial<ClaimRequest> = {},
): ClaimRequest {
  return {
    worker,
    limit: 10,
    kinds: kinds.map((kind) => (typeof kind === "string" ? claimKind(kind) : kind)),
    turn: { counter: 0, ratio: null },
    ...changes,
  };
}

/** What ends the run of a claimed job. */
export function settlement(
  { id, runCount }: Pick<ClaimedJob, "id" | "runCount">,
  outcome: SettlementOutcome = "completed",
  changes: Partial<Settlement> = {},
): Settlement {
  return {
    jobId: id,
    runCount,
    outcome,
    delayMs: 0,
    runAt: null,
    carry: null,
    note: null,
    attachment: null,
    detail: null,
    ...changes,
  };
}

/** As many claimed jobs as were asked for, as far as the compiler can count. */
type Claimed<N extends number> = N extends 1
  ? readonly [ClaimedJob]
  : N extends 2
    ? readonly [ClaimedJob, ClaimedJob]
    : N extends 3
      ? readonly [ClaimedJob, ClaimedJob, ClaimedJob]
      : readonly ClaimedJob[];

/** Enqueues jobs of a kind and claims them, in order. */
export async function claimNew<N extends number>(
  store: PostgresStore,
  worker: WorkerId,
  kind: string,
  count: N,
): Promise<Claimed<N>> {
  await enqueue(store, ...Array.from({ length: count }, () => job(kind)));
  const { jobs } = await store.claim(claimRequest(worker, [kind], { limit: count }));
  if (jobs.length !== count) throw new Error(`${jobs.length} of ${count} jobs were claimed`);
  return jobs as Claimed<N>;
}
