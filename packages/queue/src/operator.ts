import {
  type JobFilter,
  type JobId,
  type JobPage,
  type JobRecord,
  type JournalEntry,
  type OperatorStore,
  resolveJobFilter,
  toJobId,
  toJobPage,
} from "@venturi/core";
import type { WaitOptions } from "./enqueue.ts";
import { checkMembers } from "./options.ts";

/** What a queue over a full store can tell about its jobs. */
export interface Operator {
  /** A job as it stands now; null when the store knows none of this id. Throws `invalid-argument` for what is no id. */
  job(id: JobId, options?: WaitOptions): Promise<JobRecord | null>;
  /** A page of jobs, newest first by id. Throws `invalid-argument` naming the member of the filter. */
  jobs(filter?: JobFilter): Promise<JobPage>;
  /** All that happened to a job, in order; empty for an unknown one. Throws `invalid-argument` for what is no id. */
  journal(id: JobId, options?: WaitOptions): Promise<readonly JournalEntry[]>;
}

export function createOperator(store: OperatorStore): Operator {
  return {
    async job(id, options) {
      const jobId = toJobId(id, "id");
      const found = await store.findJob({ id: jobId, signal: readSignal(options) });
      return found.job;
    },
    async jobs(filter) {
      const query = resolveJobFilter(filter);
      // One more than the page holds says whether there is another page.
      const found = await store.queryJobs({ ...query, limit: query.limit + 1 });
      return toJobPage(found.jobs, query.limit);
    },
    async journal(id, options) {
      const jobId = toJobId(id, "id");
      const read = await store.readJournal({ jobId, signal: readSignal(options) });
      return read.entries;
    },
  };
}

function readSignal(options: WaitOptions = {}): AbortSignal | undefined {
  checkMembers("options", options, ["signal"]);
  options.signal?.throwIfAborted();
  return options.signal;
}
