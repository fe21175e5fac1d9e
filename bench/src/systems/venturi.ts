import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import pg from "pg";
import * as v from "valibot";
import type { Payload, Producer, RunningWorker, System, Variant, WorkRequest } from "./system.ts";

const schema = v.object({ id: v.number(), pad: v.string() });
const Noop = defineTask({ kind: "noop", payload: schema });

/** At its best it is left alone: claiming ahead by itself was faster than any fixed `prefetch` that was tried. */
function options(_: Variant, concurrency: number) {
  return { concurrency };
}

async function prepare(url: string): Promise<void> {
  const store = await PostgresStore.connect({ connectionString: url });
  await store.migrate();
  await store.close();
}

function producer(pool: pg.Pool, close: () => Promise<void>): Producer {
  const queue = new Queue(pool);
  return {
    add: (payload: Payload) => queue.enqueue(Noop(payload)),
    addMany: (payloads: readonly Payload[]) =>
      queue.enqueueMany(payloads.map((payload) => Noop(payload))),
    addWithin: (client: pg.ClientBase, payload: Payload) =>
      queue.within(client).enqueue(Noop(payload)),
    close,
  };
}

/** A lean queue over a pool of the application's. */
async function produce(url: string): Promise<Producer> {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  return producer(pool, () => pool.end());
}

/** A queue for each caller: calls share statements within one queue only. */
async function produceApart(url: string, count: number): Promise<Producer[]> {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  let open = count;
  const close = async () => {
    open -= 1;
    if (open === 0) await pool.end();
  };
  return Array.from({ length: count }, () => producer(pool, close));
}

async function work(request: WorkRequest): Promise<RunningWorker> {
  const { url, variant, concurrency, kinds, handle } = request;
  const store = await PostgresStore.connect({ connectionString: url });
  const worker = new Worker(store, options(variant, concurrency));
  worker.register(Noop, ({ id }) => handle(id));
  for (let kind = 1; kind < kinds; kind += 1) {
    worker.register(defineTask({ kind: `kind_${kind}`, payload: schema }), ({ id }) => handle(id));
  }
  const running = worker.run();
  return {
    stop: async () => {
      await worker.stop();
      await running;
    },
    close: () => store.close(),
  };
}

export const venturi: System = { prepare, produce, produceApart, work, settings: options };
