import { propagation, trace } from "@opentelemetry/api";
import { Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { instrument } from "../index.ts";
import { Dying, Flaky, Follow, Hanging, Merged, Pausing } from "./tasks.ts";
import { MemorySdk } from "./telemetry.ts";

// A worker as a process of its own, of jobs that hang only if its second argument says so. Says when a job hangs, and
// when it is told to stop writes what it recorded as a line of JSON.
const sdk = new MemorySdk();
instrument({ meterProvider: sdk.meterProvider });
const store = await PostgresStore.connect({ connectionString: process.argv[2] ?? "" });
const queue = new Queue(store);
const tracer = trace.getTracer("worker");
const hang = (): Promise<void> =>
  new Promise(() => {
    process.stdout.write("hanging\n");
  });

const worker = new Worker(store, { concurrency: 2, workerTimeout: "300ms" }).register(
  Hanging,
  (_, { runCount }) => (runCount === 1 ? hang() : undefined),
);
if (process.argv[3] !== "hanging") {
  worker
    .register(Flaky, async (_, ctx) => {
      const tenant = propagation.getActiveBaggage()?.getEntry("tenant")?.value ?? "none";
      tracer.startSpan("inside flaky", { attributes: { tenant } }).end();
      if (ctx.runCount === 1) throw new TypeError("once");
      await queue.enqueue(Follow({ n: 1 }));
    })
    .register(Pausing, (_, { runCount }) =>
      runCount === 1 ? Outcome.pauseFor(0) : Outcome.completed(),
    )
    .register(Dying, () => {
      throw TaskError.permanent(new RangeError("never"));
    })
    .register(Merged, () => undefined)
    .register(Follow, () => undefined);
}

const controller = new AbortController();
process.once("SIGTERM", () => controller.abort());
await worker.run({ signal: controller.signal });
await store.close();
process.stdout.write(`${JSON.stringify(await sdk.collect())}\n`);
