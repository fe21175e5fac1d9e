import {
  type CleanupFilter,
  invalidArgument,
  type JobFilter,
  type JobId,
  type JobPage,
  type JobRecord,
  type JournalEntry,
  type OperatorStore,
  readSignal,
  resolveCleanupFilter,
  resolveJobFilter,
  type Stats,
  toJobId,
  toJobPage,
  toSignal,
} from "@venturi/core";
import type { WaitOptions } from "./enqueue.ts";

/** What a queue over a full store can say about its jobs, and do to them. Every call rejects with `database` when it fails. */
export interface Operator {
  /** A job as it stands now; null when there is none with this id. Rejects with `invalid-argument` for what is no id. */
  job(id: JobId, options?: WaitOptions): Promise<JobRecord | null>;
  /**
   * A page of jobs, newest first by id. The signal may be given in the filter or in the options. Rejects with
   * `invalid-argument` naming the member of the filter.
   */
  jobs(filter?: JobFilter, options?: WaitOptions): Promise<JobPage>;
  /** The journal of a job, in order; empty for an unknown job. Rejects with `invalid-argument` for what is no id. */
  journal(id: JobId, options?: WaitOptions): Promise<readonly JournalEntry[]>;
  /** Counts of the queue at one moment. What it costs does not grow with the jobs that have completed. */
  stats(options?: WaitOptions): Promise<Stats>;
  /**
   * Deletes jobs that ended before an instant, with their journals, and returns how many. Unless the filter names a kind, it
   * also forgets workers that have been gone for as long.
   *
   * It works in batches of up to 1,000 jobs, each a transaction of its own: several processes may do it at once, and what
   * has been deleted before an interruption stays deleted. The signal may be given in the filter or in the options. Rejects
   * with `invalid-argument` naming the member of the filter.
   *
   * @example await queue.cleanup({ finishedBefore: lastMonth, status: ["completed", "cancelled"] });
   */
  cleanup(filter: CleanupFilter, options?: WaitOptions): Promise<number>;
  /**
   * Puts a dead job back: it is pending and due now, its failures are forgotten, its run count and carry are kept. False if
   * the job is not dead or not known. Rejects with `invalid-argument` for what is no id.
   */
  retry(id: JobId, options?: WaitOptions): Promise<boolean>;
  /**
   * Ends a pending job as cancelled. False if the job is claimed, has ended, is not known, or is just being changed by
   * somebody else. Rejects with `invalid-argument` for what is no id.
   */
  cancel(id: JobId, options?: WaitOptions): Promise<boolean>;
}

export function createOperator(store: OperatorStore): Operator {
  return {
    async job(id, options) {
      const jobId = toJobId(id, "id");
      const found = await store.findJob({ id: jobId, signal: signalOf(options) });
      return found.job;
    },
    async jobs(filter, options) {
      const query = resolveJobFilter(filter);
      const signal = oneSignal(query.signal, options);
      // One more than the page holds says whether there is another page.
      const found = await store.queryJobs({ ...query, limit: query.limit + 1, signal });
      return toJobPage(found.jobs, query.limit);
    },
    async journal(id, options) {
      const jobId = toJobId(id, "id");
      const read = await store.readJournal({ jobId, signal: signalOf(options) });
      return read.entries;
    },
    async stats(options) {
      return (await store.stats({ signal: signalOf(options) })).stats;
    },
    async cleanup(filter, options) {
      const request = resolveCleanupFilter(filter);
      const signal = oneSignal(request.signal, options);
      return (await store.cleanup({ ...request, signal })).deleted;
    },
    async retry(id, options) {
      const jobId = toJobId(id, "id");
      return (await store.retry({ id: jobId, signal: signalOf(options) })).applied;
    },
    async cancel(id, options) {
      const jobId = toJobId(id, "id");
      return (await store.cancel({ id: jobId, signal: signalOf(options) })).applied;
    },
  };
}

/** The signal of a call that takes one in its filter too. */
function oneSignal(
  inFilter: AbortSignal | undefined,
  options: WaitOptions | undefined,
): AbortSignal | undefined {
  toSignal(inFilter)?.throwIfAborted();
  const signal = signalOf(options);
  if (signal !== undefined && inFilter !== undefined && signal !== inFilter)
    throw invalidArgument("signal", "cannot go with filter.signal", "pass one of them");
  return signal ?? inFilter;
}

function signalOf(options: WaitOptions = {}): AbortSignal | undefined {
  const signal = readSignal(options, "this call");
  signal?.throwIfAborted();
  return signal;
}
