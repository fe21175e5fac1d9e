import type { JobId, JobRecord } from "@venturi/core";
import type { OperatorQueue } from "@venturi/queue";
import { IndexFile, IndexFolder } from "@venturi-examples/file-index-tasks";

export interface JobSummary {
  readonly byStatus: ReadonlyMap<string, number>;
  readonly runs: number;
  /** Failures of jobs that were tried again. */
  readonly retries: number;
  readonly dead: readonly { readonly id: JobId; readonly kind: string; readonly reason: string }[];
}

/** Adds up what became of the jobs of scans, read from the queue itself. */
export async function summariseJobs(
  queue: OperatorQueue,
  scans: readonly string[],
): Promise<JobSummary> {
  const byStatus = new Map<string, number>();
  const dead: { id: JobId; kind: string; reason: string }[] = [];
  let runs = 0;
  let failures = 0;
  for await (const job of jobsOf(queue, scans)) {
    byStatus.set(job.status, (byStatus.get(job.status) ?? 0) + 1);
    runs += job.runCount;
    failures += job.failureCount;
    if (job.status === "dead") dead.push({ id: job.id, kind: job.kind, reason: "" });
  }
  const reasons = await Promise.all(
    dead.map(async ({ id }) => (await queue.journal(id)).at(-1)?.note ?? "no reason given"),
  );
  return {
    byStatus,
    runs,
    retries: failures - dead.length,
    dead: dead.map((job, index) => ({ ...job, reason: reasons[index] ?? "" })),
  };
}

/** Whether any job of the scans has not ended. */
export async function hasUnfinishedJobs(
  queue: OperatorQueue,
  scans: readonly string[],
): Promise<boolean> {
  const status = ["pending", "claimed"] as const;
  const { jobs } = await queue.jobs({ kind: kinds, status, limit: 1 });
  return jobs.some((job) => isOf(job, scans));
}

const kinds = [IndexFile.kind, IndexFolder.kind];

function isOf({ payload }: JobRecord, scans: readonly string[]): boolean {
  return scans.includes((payload as { readonly scan: string }).scan);
}

/** Newest first, so that it can stop where an earlier scan begins. */
async function* jobsOf(queue: OperatorQueue, scans: readonly string[]): AsyncGenerator<JobRecord> {
  let cursor: string | undefined;
  do {
    const rest = cursor === undefined ? {} : { cursor };
    const page = await queue.jobs({ kind: kinds, limit: 1000, ...rest });
    const ours = page.jobs.filter((job) => isOf(job, scans));
    yield* ours;
    if (ours.length === 0) return;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}
