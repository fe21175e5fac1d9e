import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import * as v from "valibot";
import { Meter } from "../meter.ts";
import { batchSize, payload, readSettings } from "./settings.ts";
const { databaseUrl, jobs, concurrency, payloadBytes } = readSettings();
const Noop = defineTask({ kind: "noop", payload: v.object({ id: v.number(), pad: v.string() }) });
const store = await PostgresStore.connect({ connectionString: databaseUrl });
await store.migrate();
const queue = new Queue(store);
const meter = new Meter(databaseUrl, jobs);
await meter.enqueue(async () => {
    for (let first = 0; first < jobs; first += batchSize) {
        const batch = Array.from({ length: batchSize }, (_, index) => Noop(payload(first + index, payloadBytes)));
        await queue.enqueueMany(batch);
    }
});
const worker = new Worker(store, { concurrency }).register(Noop, () => meter.handled());
const figures = await meter.drain(async () => {
    const running = worker.run();
    await meter.allHandled;
    await worker.stop();
    await running;
}, "venturi_queue");
await store.close();
process.stdout.write(`${JSON.stringify(figures)}\n`);
