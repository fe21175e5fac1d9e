import {
  type ConnectionOptions,
  createPostgresBackend,
  Queue,
  runMigrations,
  Worker,
  withBackend,
} from "bullmq";
import pg from "pg";
import type { Payload, Producer, RunningWorker, System, Variant, WorkRequest } from "./system.ts";

const name = "noop";
const onPostgres = withBackend(createPostgresBackend);

/** Finished jobs are removed, as its guide advises; enough connections for the concurrency. */
function options(variant: Variant, concurrency: number) {
  if (variant === "defaults") return { concurrency };
  return { concurrency, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
}

/** The part of both backends that is used here. */
interface AnyQueue {
  add(name: string, data: Payload): Promise<unknown>;
  addBulk(jobs: { name: string; data: Payload }[]): Promise<unknown>;
  close(): Promise<void>;
}

function producer(queue: AnyQueue): Producer {
  return {
    add: (data: Payload) => queue.add(name, data),
    addMany: (payloads: readonly Payload[]) =>
      queue.addBulk(payloads.map((data) => ({ name, data }))),
    close: () => queue.close(),
  };
}

function running(worker: { close(): Promise<void> }): RunningWorker {
  return { stop: () => worker.close(), close: () => Promise.resolve() };
}

async function migrate(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await runMigrations(client);
  await client.end();
}

function connection(url: string, variant: Variant, concurrency: number) {
  return variant === "best" ? { connectionString: url, max: Math.min(concurrency, 32) } : url;
}

export const bullmqPostgres: System = {
  prepare: migrate,
  produce: async (url, variant) =>
    producer(new onPostgres.Queue<Payload>(name, { connection: connection(url, variant, 16) })),
  work: async ({ url, variant, concurrency, handle }: WorkRequest) => {
    const worker = new onPostgres.Worker<Payload>(name, async ({ data }) => handle(data.id), {
      connection: connection(url, variant, concurrency),
      ...options(variant, concurrency),
    });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    return running(worker);
  },
  settings: (variant, concurrency) => ({
    concurrency,
    ...(variant === "best"
      ? { removeOnComplete: true, removeOnFail: true, "pool max": Math.min(concurrency, 32) }
      : {}),
  }),
};

function redis(url: string): ConnectionOptions {
  return { url, maxRetriesPerRequest: null };
}

export const bullmqRedis: System = {
  prepare: async (url) => {
    const queue = new Queue(name, { connection: redis(url) });
    await queue.obliterate({ force: true });
    await queue.close();
  },
  produce: async (url) => producer(new Queue<Payload>(name, { connection: redis(url) })),
  work: async ({ url, variant, concurrency, handle }: WorkRequest) => {
    const worker = new Worker<Payload>(name, async ({ data }) => handle(data.id), {
      connection: redis(url),
      ...options(variant, concurrency),
    });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    return running(worker);
  },
  settings: (variant, concurrency) => ({
    concurrency,
    ...(variant === "best" ? { removeOnComplete: true, removeOnFail: true } : {}),
  }),
};
