import { Logger, makeWorkerUtils, type RunnerOptions, run, runMigrations } from "graphile-worker";
import type pg from "pg";
import type { Payload, Producer, RunningWorker, System, Variant, WorkRequest } from "./system.ts";

const logger = new Logger(() => () => undefined);

/** Its documentation's settings for throughput: a local queue, and results written in batches without delay. */
function preset(variant: Variant, concurrency: number) {
  if (variant === "defaults") return null;
  return {
    maxPoolSize: concurrency + 1,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
}

async function produce(url: string): Promise<Producer> {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  return {
    add: (payload: Payload) => utils.addJob("noop", payload),
    addMany: (payloads: readonly Payload[]) =>
      utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload }))),
    // Its documented way from inside a transaction.
    addWithin: (client: pg.ClientBase, payload: Payload) =>
      client.query({
        name: "add_job",
        text: "select graphile_worker.add_job('noop', $1::json)",
        values: [JSON.stringify(payload)],
      }),
    close: async () => {
      await utils.release();
    },
  };
}

async function work(request: WorkRequest): Promise<RunningWorker> {
  const { url, variant, concurrency, handle } = request;
  const best = preset(variant, concurrency);
  const options: RunnerOptions = {
    connectionString: url,
    concurrency,
    noHandleSignals: true,
    logger,
    taskList: { noop: (payload) => handle((payload as Payload).id) },
    ...(best === null ? {} : { preset: { worker: best } }),
  };
  const runner = await run(options);
  return { stop: () => runner.stop(), close: () => Promise.resolve() };
}

export const graphileWorker: System = {
  prepare: (url) => runMigrations({ connectionString: url, logger }),
  produce,
  work,
  settings: (variant, concurrency) => {
    const best = preset(variant, concurrency);
    if (best === null) return { concurrency };
    const { localQueue, ...rest } = best;
    return { concurrency, "localQueue.size": localQueue.size, ...rest };
  },
};
