import type pg from "pg";
import { PgBoss, type WorkOptions } from "pg-boss";
import type { Payload, Producer, RunningWorker, System, Variant, WorkRequest } from "./system.ts";

const name = "noop";

/** Woken by notifications, fetching whole batches one after another while there are any. */
function options(variant: Variant, concurrency: number): WorkOptions {
  if (variant === "defaults") return { localConcurrency: concurrency };
  const localConcurrency = Math.min(4, concurrency);
  return {
    localConcurrency,
    batchSize: Math.max(1, Math.floor(concurrency / localConcurrency)),
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  };
}

async function start(url: string, variant: Variant, isWorker: boolean): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: url,
    useListenNotify: isWorker && variant === "best",
    // Producers and workers maintain nothing while they are measured, as in a fleet where one instance does.
    supervise: isWorker,
  });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

async function prepare(url: string): Promise<void> {
  const boss = await start(url, "defaults", false);
  await boss.createQueue(name, { notify: true });
  await boss.stop({ graceful: false });
}

async function produce(url: string, variant: Variant): Promise<Producer> {
  const boss = await start(url, variant, false);
  return {
    add: (payload: Payload) => boss.send(name, payload),
    addMany: (payloads: readonly Payload[]) =>
      boss.insert(
        name,
        payloads.map((data) => ({ data })),
      ),
    addWithin: (client: pg.ClientBase, payload: Payload) =>
      boss.send(name, payload, {
        db: { executeSql: (text, values) => client.query(text, values) },
      }),
    close: () => boss.stop({ graceful: false }),
  };
}

async function work(request: WorkRequest): Promise<RunningWorker> {
  const { url, variant, concurrency, handle } = request;
  const boss = await start(url, variant, true);
  await boss.work<Payload>(name, options(variant, concurrency), async (jobs) => {
    await Promise.all(jobs.map((job) => handle(job.data.id)));
  });
  return {
    stop: () => boss.offWork(name, { wait: true }),
    close: () => boss.stop({ graceful: false }),
  };
}

export const pgBoss: System = {
  prepare,
  produce,
  work,
  settings: (variant, concurrency) => ({
    useListenNotify: variant === "best",
    notify: true,
    ...(options(variant, concurrency) as ReturnType<System["settings"]>),
  }),
};
