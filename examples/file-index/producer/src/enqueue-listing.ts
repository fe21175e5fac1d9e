import { setTimeout as sleep } from "node:timers/promises";
import { isVenturiError, type JobId, type UnsentJob } from "@venturi/core";
import type { EnqueueItem, Queue } from "@venturi/queue";
import { IndexFile, IndexFolder, pathToText } from "@venturi-examples/file-index-tasks";
import type { Listing } from "./list-files.ts";

/** Jobs that one call stores, all of them or none. */
const chunkSize = 5_000;
const maxAttempts = 8;

export interface EnqueueRequest {
  /** Names this run of the producer; results of different scans do not mix. */
  readonly scan: string;
  readonly root: Buffer;
  readonly listing: Listing;
  readonly signal?: AbortSignal | undefined;
}

/** Enqueues a job for every file, then one for every folder. Returns their ids. */
export async function enqueueListing(
  queue: Pick<Queue, "enqueueMany">,
  { scan, root, listing, signal }: EnqueueRequest,
): Promise<JobId[]> {
  const ids: JobId[] = [];
  let chunk: UnsentJob[] = [];
  const flush = async () => {
    for (const id of await enqueueForSure(queue, chunk, signal)) ids.push(id);
    chunk = [];
  };
  for (const job of jobsOf(scan, pathToText(root), listing)) {
    chunk.push(job);
    if (chunk.length === chunkSize) await flush();
  }
  if (chunk.length > 0) await flush();
  return ids;
}

function* jobsOf(scan: string, root: string, { folders }: Listing): Generator<UnsentJob> {
  for (const { folder, files } of folders) {
    const path = pathToText(folder);
    for (const name of files) {
      yield IndexFile({ scan, root, folder: path, name: pathToText(name) });
    }
  }
  for (const { folder, files } of folders) {
    yield IndexFolder({ scan, folder: pathToText(folder), files: files.length });
  }
}

/**
 * Repeats a call that may pass the next time. Where the connection was lost on the way, nobody
 * knows whether the jobs were stored: with the same ids they are stored once.
 */
async function enqueueForSure(
  queue: Pick<Queue, "enqueueMany">,
  jobs: readonly UnsentJob[],
  signal: AbortSignal | undefined,
): Promise<readonly JobId[]> {
  let items: readonly EnqueueItem[] = jobs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await queue.enqueueMany(items, { signal });
    } catch (error) {
      if (!isVenturiError(error) || !error.isRetryable || attempt === maxAttempts) throw error;
      const { ids } = error;
      if (ids !== undefined) items = jobs.map((job, index) => ({ job, id: ids[index] }));
    }
    await sleep(100 * 2 ** attempt, undefined, signal === undefined ? {} : { signal });
  }
}
