import { setTimeout as sleep } from "node:timers/promises";
import { isVenturiError, type UnsentJob } from "@venturi/core";
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
  readonly onProgress?: ((enqueued: number) => void) | undefined;
}

/** Enqueues a job for every file, then one for every folder. Returns how many. */
export async function enqueueListing(
  queue: Pick<Queue, "enqueueMany">,
  { scan, root, listing, signal, onProgress }: EnqueueRequest,
): Promise<number> {
  let enqueued = 0;
  let chunk: UnsentJob[] = [];
  const flush = async () => {
    await enqueueForSure(queue, chunk, signal);
    enqueued += chunk.length;
    chunk = [];
    onProgress?.(enqueued);
  };
  for (const job of jobsOf(scan, pathToText(root), listing)) {
    chunk.push(job);
    if (chunk.length === chunkSize) await flush();
  }
  if (chunk.length > 0) await flush();
  return enqueued;
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
): Promise<void> {
  let items: readonly EnqueueItem[] = jobs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await queue.enqueueMany(items, { signal });
      return;
    } catch (error) {
      if (!isVenturiError(error) || !error.isRetryable || attempt === maxAttempts) throw error;
      const { ids } = error;
      if (ids !== undefined) items = jobs.map((job, index) => ({ job, id: ids[index] }));
    }
    await sleep(100 * 2 ** attempt, undefined, signal === undefined ? {} : { signal });
  }
}
