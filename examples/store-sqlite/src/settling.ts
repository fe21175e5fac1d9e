import type {
  ExtendLeaseRequest,
  ExtendLeaseResult,
  Recovery,
  Settlement,
  SettleVerdict,
  UndoneClaim,
  WorkerId,
} from "@venturi/core";
import type { Database, EntryValues, JobRow } from "./database.ts";
import { isDead } from "./liveness.ts";

const unclaimed = "claimed_by = null, claimed_at = null, lease_expires_at = null, backstop = null";

export function settle(
  database: Database,
  worker: WorkerId,
  settlement: Settlement,
): SettleVerdict {
  const { jobId, runCount, outcome, note, attachment, detail, carry } = settlement;
  const row = database.held(worker, jobId, runCount);
  if (row === undefined) {
    const own = database.get(
      `select 1 from journal where job_id = ? and run_no = ? and worker = ? and outcome in (?, 'completed') limit 1`,
      jobId,
      runCount,
      worker,
      outcome,
    );
    return own === undefined ? "lost" : "done";
  }
  const failureCount = row.failure_count + (outcome === "retried" || outcome === "dead" ? 1 : 0);
  const entry = { outcome, runNo: runCount, failureCount, note, attachment, detail, worker };
  if (outcome === "completed" || outcome === "dead") end(database, row, outcome, entry);
  else {
    const due =
      outcome === "released"
        ? database.now()
        : settlement.runAt === null
          ? database.after(settlement.delayMs)
          : database.at(settlement.runAt);
    repend(database, row, due, carry ?? row.carry, entry);
  }
  return "applied";
}

function end(
  database: Database,
  row: JobRow,
  state: "completed" | "dead",
  entry: EntryValues,
): void {
  database.run(
    `update jobs set state = ?, ${unclaimed}, failure_count = ?, finished_at = ?, carry = ? where id = ?`,
    state,
    entry.failureCount,
    database.now(),
    state === "dead" ? row.carry : null,
    row.id,
  );
  database.log(row, { ...entry, startedAt: row.claimed_at });
}

function repend(
  database: Database,
  row: JobRow,
  dueAt: number,
  carry: string | null,
  entry: EntryValues,
): void {
  database.run(
    `update jobs set state = 'pending', ${unclaimed}, failure_count = ?, carry = ?, visible_at = ?, scheduled = ? where id = ?`,
    entry.failureCount,
    carry,
    dueAt,
    dueAt > database.now() ? 1 : 0,
    row.id,
  );
  database.log(row, { ...entry, startedAt: row.claimed_at });
}

export function handBack(
  database: Database,
  worker: WorkerId,
  { jobId, runCount, leaseExpiresAt }: UndoneClaim,
): SettleVerdict {
  const row = database.held(worker, jobId, runCount);
  if (row === undefined) return "lost";
  // A later claim has the same run count, but another lease.
  if (leaseExpiresAt !== undefined && row.lease_expires_at !== leaseExpiresAt.getTime())
    return "lost";
  database.run(
    `update jobs set state = 'pending', ${unclaimed}, run_count = run_count - 1 where id = ?`,
    row.id,
  );
  return "applied";
}

export function extendLease(
  database: Database,
  worker: WorkerId,
  { jobId, runCount, leaseMs }: ExtendLeaseRequest["extensions"][number],
): ExtendLeaseResult {
  const row = database.held(worker, jobId, runCount);
  if (row === undefined) return { verdict: "lost" };
  const until = Math.max(row.lease_expires_at ?? 0, database.after(leaseMs));
  database.run("update jobs set lease_expires_at = ? where id = ?", until, row.id);
  return { verdict: "applied", leaseExpiresAt: new Date(until), leaseMs: until - database.now() };
}

/** Whether it applied: only while the claim is held, and overdue or its holder dead. */
export function recover(database: Database, recovery: Recovery): boolean {
  const { jobId, runCount, holder, outcome, delayMs, note } = recovery;
  const row = database.held(holder, jobId, runCount);
  if (row === undefined) return false;
  if ((row.lease_expires_at ?? 0) > database.now() && !isDead(database, holder)) return false;
  const failureCount = row.failure_count + 1;
  const entry = { outcome, runNo: runCount, failureCount, note, worker: holder };
  if (outcome === "dead") end(database, row, outcome, entry);
  else repend(database, row, database.after(delayMs), row.carry, entry);
  return true;
}
