import type {
  ClaimRef,
  ExtendLeaseRequest,
  ExtendLeaseResult,
  Recovery,
  Settlement,
  SettleVerdict,
  UndoneClaim,
  WorkerId,
} from "@venturi/core";
import { toStoredJson } from "./json-text.ts";
import { deadHolder } from "./liveness.ts";
import type { Claim, LiveJob, Tables } from "./tables.ts";

/** A claimed job that a worker still holds with this run. */
interface Held {
  readonly job: LiveJob;
  readonly claim: Claim;
}

function heldBy(tables: Tables, worker: WorkerId, { jobId, runCount }: ClaimRef): Held | null {
  const job = tables.live.get(jobId);
  const claim = job?.claim ?? null;
  if (job === undefined || claim === null) return null;
  return claim.worker === worker && job.runCount === runCount ? { job, claim } : null;
}

/** What a settlement wrote, and when the job is due again; null: it has ended. */
interface Settled {
  readonly verdict: SettleVerdict;
  readonly dueAt: number | null;
}

export function settle(tables: Tables, worker: WorkerId, settlement: Settlement): Settled {
  const held = heldBy(tables, worker, settlement);
  if (held === null) {
    const { jobId, runCount, outcome } = settlement;
    const done = (tables.journals.get(jobId) ?? []).some(
      (entry) =>
        entry.runNo === runCount &&
        entry.worker === worker &&
        (entry.outcome === outcome || entry.outcome === "completed"),
    );
    return { verdict: done ? "done" : "lost", dueAt: null };
  }
  const { outcome, note, attachment, detail, carry, runAt, delayMs } = settlement;
  const failed = outcome === "retried" || outcome === "dead";
  const failureCount = held.job.failureCount + (failed ? 1 : 0);
  const entry = {
    outcome,
    note,
    attachment: attachment === null ? null : toStoredJson(attachment),
    detail: detail === null ? null : toStoredJson(detail),
    worker,
    startedAt: held.claim.claimedAt,
  };
  if (outcome === "completed" || outcome === "dead") {
    end(tables, held, entry, failureCount);
    return { verdict: "applied", dueAt: null };
  }
  const due =
    outcome === "released"
      ? tables.now()
      : runAt === null
        ? tables.after(delayMs)
        : tables.at(runAt);
  const kept = carry === null ? held.job.carry : toStoredJson(carry);
  repend(tables, { ...held.job, carry: kept, failureCount }, due);
  tables.log(entry, { ...held.job, failureCount });
  return { verdict: "applied", dueAt: due };
}

type EndingEntry = Parameters<Tables["log"]>[0];

function end(tables: Tables, { job }: Held, entry: EndingEntry, failureCount: number): void {
  const { claim: _, ...state } = { ...job, failureCount };
  tables.putLive(job.id, undefined);
  if (entry.outcome === "dead")
    tables.put(tables.dead, job.id, { ...state, finishedAt: tables.now() });
  tables.log(entry, state);
}

function repend(tables: Tables, job: LiveJob, dueAt: number): void {
  const scheduled = dueAt > tables.now();
  tables.putLive(job.id, { ...job, visibleAt: dueAt, scheduled, claim: null });
}

/** A claim's answer gives the end of its lease in whole milliseconds; two claims are further apart than that. */
const mostRoundingMs = 2;

export function handBack(tables: Tables, worker: WorkerId, claim: UndoneClaim): SettleVerdict {
  const held = heldBy(tables, worker, claim);
  if (held === null) return "lost";
  const leaseEndsAt = claim.leaseExpiresAt?.getTime() ?? held.claim.leaseExpiresAt;
  if (Math.abs(held.claim.leaseExpiresAt - leaseEndsAt) >= mostRoundingMs) return "lost";
  const { job } = held;
  tables.putLive(job.id, { ...job, runCount: job.runCount - 1, claim: null });
  return "applied";
}

export function extendLease(
  tables: Tables,
  worker: WorkerId,
  extension: ExtendLeaseRequest["extensions"][number],
): ExtendLeaseResult {
  const held = heldBy(tables, worker, extension);
  if (held === null) return { verdict: "lost" };
  const { job, claim } = held;
  const leaseExpiresAt = Math.max(claim.leaseExpiresAt, tables.after(extension.leaseMs));
  tables.putLive(job.id, { ...job, claim: { ...claim, leaseExpiresAt } });
  return {
    verdict: "applied",
    leaseExpiresAt: new Date(leaseExpiresAt),
    leaseMs: leaseExpiresAt - tables.now(),
  };
}

/** Null where the claim is not held or not stale any more; else when the job is due again, if it is. */
export function recover(
  tables: Tables,
  { jobId, runCount, holder, outcome, delayMs, note }: Recovery,
): { readonly dueAt: number | null } | null {
  const held = heldBy(tables, holder, { jobId, runCount });
  if (held === null) return null;
  const { job, claim } = held;
  if (claim.leaseExpiresAt > tables.now() && !deadHolder(tables, holder)) return null;
  const failureCount = job.failureCount + 1;
  const entry = { outcome, note, worker: holder, startedAt: claim.claimedAt };
  if (outcome === "dead") {
    end(tables, held, entry, failureCount);
    return { dueAt: null };
  }
  const dueAt = tables.after(delayMs);
  repend(tables, { ...job, failureCount }, dueAt);
  tables.log(entry, { ...job, failureCount });
  return { dueAt };
}
