import {
  AbortWatch,
  checkMembers,
  type EnqueuedJob,
  enqueueUnknown,
  type Instant,
  invalidArgument,
  isVenturiError,
  type JobId,
  readArgument,
  toSignal,
  type UnsentJob,
} from "@venturi/core";
import type { Lanes } from "./backend.ts";
import {
  type EnqueueItem,
  type EnqueueOptions,
  toEnqueueJob,
  toItemJob,
  type WaitOptions,
} from "./enqueue.ts";
import { errorAnew } from "./error-anew.ts";
import { enqueueStarted } from "./events.ts";
import type { QueuedJob } from "./merging.ts";

/** The ways to enqueue, over the lanes of one backend. */
export class Producer {
  readonly #lanes: Lanes;
  readonly #aborts = new AbortWatch();

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  async enqueue(job: UnsentJob, options: EnqueueOptions = {}): Promise<JobId> {
    const { signal, rest } = splitSignal(options);
    try {
      const prepared = await this.#abortable(toEnqueueJob(job, rest), signal);
      const [stored] = await this.#store([prepared], signal, false);
      return (stored as EnqueuedJob).id;
    } catch (error) {
      throw callersOwn(error, signal);
    }
  }

  async enqueueAt(
    job: UnsentJob,
    runAt: Instant,
    options: Omit<EnqueueOptions, "delay" | "runAt"> = {},
  ): Promise<JobId> {
    if (runAt === undefined) {
      throw invalidArgument("runAt", "is missing", "pass a Date, or enqueue for a job due at once");
    }
    const given = readArgument("options", (): EnqueueOptions => ({ ...options }));
    if (given.runAt !== undefined) {
      throw invalidArgument("runAt", "is given twice", "leave it out of the options of enqueueAt");
    }
    // Awaited, so that the stack of an error goes on to the caller.
    return await this.enqueue(job, { ...given, runAt });
  }

  async enqueueMany(items: readonly EnqueueItem[], options: WaitOptions = {}): Promise<JobId[]> {
    readArgument("options", () => checkMembers("options", options, ["signal"], "enqueueMany"));
    const { signal } = splitSignal(options);
    const list = readArgument("items", () => {
      if (Array.isArray(items)) return [...items];
      throw invalidArgument("items", "is not an array", "pass [job, { job, delay }, …]");
    });
    try {
      const prepared = await this.#abortable(prepareAll(list), signal);
      if (prepared.length === 0) return [];
      const stored = await this.#store(prepared, signal, true);
      return stored.map(({ id }) => id);
    } catch (error) {
      throw callersOwn(error, signal);
    }
  }

  #store(
    prepared: readonly QueuedJob[],
    signal: AbortSignal | undefined,
    isBatch: boolean,
  ): Promise<readonly EnqueuedJob[]> {
    return new Promise((resolve, reject) => {
      const lane = this.#lanes.of(prepared);
      const watched = enqueueStarted(prepared, lane, isBatch);
      const jobs = watched?.jobs ?? prepared;
      const stopWatching = this.#onAbort(signal, watched?.rejecting(reject) ?? reject);
      lane.add({
        jobs,
        resolve: (stored) => {
          stopWatching?.();
          this.#lanes.stored(lane, prepared);
          watched?.stored(stored);
          resolve(stored);
        },
        reject: (error) => {
          stopWatching?.();
          const own = ownError(error, jobs);
          watched?.failed(own);
          reject(own);
        },
        isAbandoned: () => signal?.aborted === true,
      });
    });
  }

  /** Stops waiting for user code (an asynchronous schema) when the signal aborts. */
  #abortable<T>(value: T | Promise<T>, signal: AbortSignal | undefined): T | Promise<T> {
    if (!(value instanceof Promise) || signal === undefined) return value;
    return new Promise((resolve, reject) => {
      const stopWatching = this.#onAbort(signal, reject);
      value.then(resolve, reject).finally(() => stopWatching?.());
    });
  }

  #onAbort(signal: AbortSignal | undefined, reject: (reason: unknown) => void) {
    if (signal === undefined) return undefined;
    return this.#aborts.watch(signal, () => reject(signal.reason));
  }
}

/** What a call rejects with: an error whose stack names its caller, or the reason that the caller gave. */
function callersOwn(error: unknown, signal: AbortSignal | undefined): unknown {
  const isReason = signal?.aborted === true && error === signal.reason;
  return isVenturiError(error) && !isReason ? errorAnew(error) : error;
}

/** A statement may have carried other callers' jobs too: each gets the ids to repeat its own call with. */
function ownError(error: unknown, jobs: readonly QueuedJob[]): unknown {
  if (!isVenturiError(error) || error.code !== "enqueue-unknown") return error;
  return enqueueUnknown(
    jobs.map(({ id }) => id),
    error.cause,
  );
}

/** Checked, or being checked by asynchronous schemas, in order. */
function prepareAll(
  items: readonly EnqueueItem[],
): readonly QueuedJob[] | Promise<readonly QueuedJob[]> {
  const jobs: QueuedJob[] = [];
  const pending: Promise<unknown>[] = [];
  for (let index = 0; index < items.length; index += 1) {
    try {
      const job = toItemJob(items[index] as EnqueueItem);
      if (!("then" in job)) {
        jobs[index] = job;
        continue;
      }
      const settled = job.then(
        (prepared) => {
          jobs[index] = prepared;
        },
        (error: unknown) => {
          throw atItem(error, index);
        },
      );
      pending.push(settled);
    } catch (error) {
      // Those that are still being checked are nobody's any more; their rejections are not news.
      for (const promise of pending) promise.catch(ignore);
      throw atItem(error, index);
    }
  }
  return pending.length === 0 ? jobs : Promise.all(pending).then(() => jobs);
}

function ignore(): void {
  // What is wrong with a later item does not matter once an earlier one has been refused.
}

/** The same error, saying which item it is about. */
function atItem(error: unknown, index: number): unknown {
  return isVenturiError(error) ? errorAnew(error, `items[${index}]: ${error.message}`) : error;
}

function splitSignal<T extends WaitOptions>(options: T) {
  if (typeof options !== "object" || options === null) {
    throw invalidArgument("options", "must be an object", "pass { signal } or leave it out");
  }
  const { signal, ...rest } = readArgument("options", () => ({ ...options }));
  toSignal(signal)?.throwIfAborted();
  return { signal, rest };
}
