import {
  type JobFilter,
  type JobPage,
  type JobRecord,
  type OperatorStore,
  resolveJobFilter,
  type Task,
  type TaskInput,
  toJobPage,
} from "@venturi/core";

/** A pending job with the payload that was given to its task. */
export interface EnqueuedOf<T extends Task> extends JobRecord {
  readonly payload: TaskInput<T>;
}

/** What can be asked for jobs: an operator's queue, or a store. */
export type JobSource =
  | { jobs(filter?: JobFilter): Promise<JobPage> }
  | Pick<OperatorStore, "queryJobs">;

/**
 * The pending jobs of a task, oldest first: what the code under test has enqueued.
 *
 * @example
 * ```ts
 * await signUp({ email: "a@example.com" });
 * const [welcome] = await enqueued(store, SendEmail);
 * expect(welcome?.payload.to).toBe("a@example.com");
 * ```
 */
export async function enqueued<T extends Task>(
  source: JobSource,
  task: T,
): Promise<readonly EnqueuedOf<T>[]> {
  const found: EnqueuedOf<T>[] = [];
  const filter: JobFilter = { kind: task.kind, status: "pending", limit: 1_000 };
  let cursor: string | undefined;
  do {
    const page = await readPage(source, cursor === undefined ? filter : { ...filter, cursor });
    // What was stored was an input of this task: producers check it before they enqueue.
    found.push(...page.jobs.map((job) => job as EnqueuedOf<T>));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found.reverse();
}

async function readPage(source: JobSource, filter: JobFilter): Promise<JobPage> {
  if ("jobs" in source) return source.jobs(filter);
  const query = resolveJobFilter(filter);
  const { jobs } = await source.queryJobs({ ...query, limit: query.limit + 1 });
  return toJobPage(jobs, query.limit);
}
