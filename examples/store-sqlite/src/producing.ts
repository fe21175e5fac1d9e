import {
  type EnqueuedJob,
  type EnqueueJob,
  FAR_FUTURE_MS,
  type FindCandidatesRequest,
  type JobId,
  type MergeCandidate,
  type MergeChoice,
  priorityOfTier,
  priorityTier,
  VenturiError,
} from "@venturi/core";
import type { Database, JobRow } from "./database.ts";
import { readEntries } from "./records.ts";

/** Inside one write transaction. */
export function enqueue(database: Database, jobs: readonly EnqueueJob[]): EnqueuedJob[] {
  const repeated: JobId[] = [];
  return jobs.map((job) => {
    const known = findKnown(database, job);
    if (known !== null) {
      repeated.push(job.id);
      return { id: known, outcome: "repeated" };
    }
    return store(database, job, repeated);
  });
}

/** The job that an id was given to before, or merged into. */
function findKnown(database: Database, { id, kind, dedupKey = null }: EnqueueJob): JobId | null {
  const known = database.get<JobRow>(
    `select * from jobs where id = ?
    union all select j.* from journal e join jobs j on j.id = e.job_id where e.incoming_id = ? limit 1`,
    id,
    id,
  );
  if (known === undefined) return null;
  if (known.kind === kind && known.dedup_key === dedupKey) return known.id;
  const hint = "give each job an id of its own";
  throw new VenturiError(
    "id-conflict",
    `could not enqueue a job: the id ${id} belongs to a job of another kind or key; ${hint}`,
    { id },
  );
}

function store(database: Database, job: EnqueueJob, repeated: readonly JobId[]): EnqueuedJob {
  const { dedupKey = null, merge = "replace", decision } = job;
  if (dedupKey === null) return insert(database, job);
  const pending = findPending(database, job.kind, dedupKey);
  const [first] = pending;
  if (decision === undefined) {
    if (merge === "independent" || first === undefined) return insert(database, job);
    return mergeInto(database, job, { action: merge }, first);
  }
  if (decision.action === "independent") return insert(database, job);
  if (decision.action === "insert") {
    if (pending.some(({ id }) => !decision.skipped.includes(id))) throw changed(repeated);
    return insert(database, job);
  }
  const candidate = pending.find(
    ({ id, version, run_count }) =>
      id === decision.candidate && version === decision.version && run_count === decision.runCount,
  );
  if (candidate === undefined) throw changed(repeated);
  return mergeInto(database, job, decision, candidate);
}

function changed(ids: readonly JobId[]): VenturiError {
  return new VenturiError(
    "merge",
    "could not enqueue: the pending job that a merge was decided about has changed; enqueue again, and it is decided anew",
    { isRetryable: true, ids },
  );
}

function findPending(database: Database, kind: string, key: string, limit = -1) {
  return database.all<JobRow>(
    "select * from jobs where state = 'pending' and kind = ? and dedup_key = ? order by seq limit ?",
    kind,
    key,
    limit,
  );
}

function dueAt(database: Database, { delayMs = 0, runAt }: EnqueueJob): number {
  return runAt === undefined ? database.after(delayMs) : database.at(runAt);
}

function insert(database: Database, job: EnqueueJob): EnqueuedJob {
  const now = database.now();
  const visibleAt = dueAt(database, job);
  database.run(
    `insert into jobs (id, kind, dedup_key, created_at, payload, headers, state, tier, seq, visible_at, scheduled, lease_ms)
    values (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)`,
    job.id,
    job.kind,
    job.dedupKey ?? null,
    now,
    job.payload,
    headersOf(job),
    priorityTier(job.priority),
    database.nextSeq(),
    visibleAt,
    visibleAt > now ? 1 : 0,
    job.leaseMs ?? null,
  );
  return { id: job.id, outcome: "enqueued" };
}

function headersOf({ headers = null }: EnqueueJob): string | null {
  return headers === null ? null : JSON.stringify(headers);
}

type Change =
  | { readonly action: "keep" | "replace" }
  | Extract<MergeChoice, { readonly action: "with" }>;

function mergeInto(
  database: Database,
  job: EnqueueJob,
  change: Change,
  candidate: JobRow,
): EnqueuedJob {
  const { id } = candidate;
  if (change.action !== "keep") rewrite(database, job, change, candidate);
  database.log(candidate, {
    outcome: "merged",
    runNo: candidate.run_count,
    failureCount: candidate.failure_count,
    note: change.action,
    incomingId: job.id,
  });
  const outcomes = { keep: "kept", replace: "replaced", with: "merged" } as const;
  return { id, outcome: outcomes[change.action] };
}

function rewrite(database: Database, job: EnqueueJob, change: Change, candidate: JobRow): void {
  const now = database.now();
  const before = candidate.visible_at;
  const changes =
    change.action === "with"
      ? {
          payload: change.payload,
          carry: change.carry === undefined ? candidate.carry : change.carry,
          // A time that has passed means now, unless the job has been due for longer already.
          visibleAt:
            change.visibleAt === undefined
              ? before
              : Math.min(Math.max(change.visibleAt, Math.min(before, now)), FAR_FUTURE_MS),
          tier: change.priority === undefined ? candidate.tier : priorityTier(change.priority),
        }
      : {
          payload: job.payload,
          carry: null,
          visibleAt: Math.min(before, dueAt(database, job)),
          tier: priorityTier(job.priority),
        };
  const { payload, carry, visibleAt, tier } = changes;
  const wasScheduled = candidate.scheduled === 1;
  const scheduled = (wasScheduled || visibleAt > before) && visibleAt > now;
  database.run(
    `update jobs set payload = ?, headers = ?, carry = ?, visible_at = ?, tier = ?, lease_ms = ?, scheduled = ?, seq = ?,
      version = version + 1 where id = ?`,
    payload,
    headersOf(job),
    carry,
    visibleAt,
    tier,
    job.leaseMs ?? null,
    scheduled ? 1 : 0,
    // What a merge makes due arrives now.
    wasScheduled && visibleAt <= now ? database.nextSeq() : candidate.seq,
    candidate.id,
  );
}

export function findCandidates(
  database: Database,
  { kind, dedupKey, limit }: FindCandidatesRequest["keys"][number],
): MergeCandidate[] {
  return findPending(database, kind, dedupKey, limit).map((row) => ({
    id: row.id,
    version: row.version,
    runCount: row.run_count,
    failureCount: row.failure_count,
    priority: priorityOfTier(row.tier),
    visibleAt: new Date(row.visible_at),
    payload: row.payload,
    carry: row.carry,
    journal: readEntries(database, row.id, 1_000),
  }));
}
