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

/** What a queue over a full store can tell about its jobs, and do to them. */
export interface Operator {
  /** A job as it stands now; null when the store knows none of this id. Throws `invalid-argument` for what is no id. */
  job(id: JobId, options?: WaitOptions): Promise<JobRecord | null>;
  /**
   * A page of jobs, newest first by id. The signal may be in the filter or in the options. Throws `invalid-argument`
   * naming the member of the filter.
   */
  jobs(filter?: JobFilter, options?: WaitOptions): Promise<JobPage>;
  /** All that happened to a job, in order; empty for an unknown one. Throws `invalid-argument` for what is no id. */
  journal(id: JobId, options?: WaitOptions): Promise<readonly JournalEntry[]>;
  /** The queue at one moment, in numbers; costs the same however many jobs have completed. */
  stats(options?: WaitOptions): Promise<Stats>;
  /**
   * Deletes jobs that ended before an instant, with their journals, and returns how many; also rows of workers that
   * have been gone for as long. It goes by bounded batches, each a transaction of its own: several processes may do
   * it at once, and one that is interrupted has deleted what it got to. The signal may be in the filter or in the
   * options. Throws `invalid-argument` naming the member of the filter.
   *
   * @example await queue.cleanup({ finishedBefore: lastMonth, status: ["completed", "cancelled"] });
   */
  cleanup(filter: CleanupFilter, options?: WaitOptions): Promise<number>;
  /**
   * Puts a dead job back: pending, due now, its failures forgotten, its runs and its carry kept. False for a job that
   * is not dead or not known. Throws `invalid-argument` for what is no id.
   */
  retry(id: JobId, options?: WaitOptions): Promise<boolean>;
  /**
   * Ends a pending job as cancelled. False for a job that is claimed, has ended, is not known, or is just being changed
   * by somebody else. Throws `invalid-argument` for what is no id.
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
