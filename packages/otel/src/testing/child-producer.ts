import { context, propagation, trace } from "@opentelemetry/api";
import { Queue } from "@venturi/queue";
import pg from "pg";
import { instrument } from "../index.ts";
import { Dying, Flaky, Hanging, Merged, Pausing } from "./tasks.ts";
import { MemorySdk } from "./telemetry.ts";

// A producer as a process of its own; writes what it recorded as a line of JSON.
const sdk = new MemorySdk();
instrument({ meterProvider: sdk.meterProvider });
const pool = new pg.Pool({ connectionString: process.argv[2] });
const queue = new Queue(pool);

const baggage = propagation.createBaggage({ tenant: { value: "t1" } });
const tracer = trace.getTracer("producer");
await context.with(propagation.setBaggage(context.active(), baggage), () =>
  tracer.startActiveSpan("request", async (span) => {
    await queue.enqueue(Flaky({ n: 1 }));
    await queue.enqueueMany([Pausing({ n: 1 }), Pausing({ n: 2 }), Dying({ n: 1 })]);
    await queue.enqueueMany([1, 2, 3, 4].map((n) => Merged({ n })));
    await queue.enqueue(Merged({ n: 5 }));
    await queue.enqueue(Hanging({ n: 1 }));
    span.end();
  }),
);
await pool.end();
process.stdout.write(`${JSON.stringify(await sdk.collect())}\n`);
