import type { JobId, WorkerId } from "@venturi/core";
import type { PostgresStore } from "@venturi/store-postgres";
import type pg from "pg";
import { until } from "./signals.ts";

interface Claims {
  readonly kind: string;
  readonly jobs?: number;
  readonly workerTimeoutMs?: number;
  readonly leaseMs?: number;
  readonly backstop?: number | null;
}

/** Claims jobs in the name of a worker that is never heard of again. */
export async function claimAndDie(store: PostgresStore, claims: Claims): Promise<WorkerId> {
  const { kind, jobs = 1, workerTimeoutMs = 300, leaseMs = 60_000, backstop = 20 } = claims;
  const { worker } = await store.startWorker({
    name: "gone",
    kinds: [kind],
    pollMaxMs: 60_000,
    workerTimeoutMs,
    shortestLeaseMs: leaseMs,
  });
  const { jobs: claimed } = await store.claim({
    worker,
    limit: jobs,
    kinds: [{ kind, limit: jobs, leaseMs, backstop }],
    turn: { counter: 0, ratio: null },
  });
  if (claimed.length !== jobs) throw new Error(`${claimed.length} of ${jobs} jobs were claimed`);
  return worker;
}

/** Ends a job's first run as others do that take its holder for dead: it is due again in an hour. */
export async function takeAway(pool: pg.Pool, store: PostgresStore, id: JobId): Promise<void> {
  const hasTaken = async () => {
    const { rows } = await pool.query(
      `update venturi_workers set beat_at = beat_at - interval '1 h'
       where id = (select claimed_by from venturi_queue where venturi_ulid(job_id) = $1) returning id`,
      [id],
    );
    const recovery = { jobId: id, runCount: 1, holder: rows[0].id, delayMs: 3_600_000 };
    const { applied } = await store.recover({
      recoveries: [{ ...recovery, note: "taken", outcome: "stale-recovered" }],
    });
    return applied[0] === true;
  };
  // A beat that was under way may show the holder alive once more.
  await until(hasTaken, { what: `job ${id} is taken from its holder` });
}
