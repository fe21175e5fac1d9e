import { defineTask, Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { drain, MemoryStore } from "@venturi/testing";
import { Worker } from "@venturi/worker";
import * as v from "valibot";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Instrumentation, instrument, observeStats } from "./index.ts";
import { MemorySdk, type PointRecord } from "./testing/telemetry.ts";

const sdk = new MemorySdk();
const { meterProvider } = sdk;
const payload = v.object({ n: v.number() });
const Work = defineTask({ kind: "work", payload });
const Later = defineTask({ kind: "later", payload });
const Keyed = defineTask({ kind: "keyed", payload, dedupKey: () => "one", merge: "keep" });
const store = new MemoryStore();
const queue = new Queue(store);
let telemetry: Instrumentation;

beforeAll(async () => {
  telemetry = instrument({ traces: false, meterProvider });
  await queue.enqueueMany([1, 2, 3, 4].map((n) => Work({ n })));
  await queue.enqueue(Keyed({ n: 1 }));
  await queue.enqueue(Keyed({ n: 2 }));
  await queue.enqueue(Later({ n: 1 }), { delay: "1h" });
  const worker = new Worker(store)
    .register(Keyed, () => undefined)
    .register(Work, ({ n }, ctx) => {
      if (n === 2 && ctx.runCount === 1) return Outcome.pauseFor(0);
      if (n === 3) throw TaskError.permanent(new RangeError("no"));
      if (n === 4) throw TaskError.retry("later", { after: "1h" });
      return undefined;
    });
  await drain(worker);
});
afterAll(() => telemetry.stop());

/** The points of a metric by the given attribute, or in all. */
async function points(name: string, attribute?: string): Promise<Record<string, number>> {
  const found: PointRecord[] = (await sdk.collect()).points.filter((point) => point.name === name);
  const sums: Record<string, number> = {};
  for (const { attributes, value } of found) {
    const key = attribute === undefined ? "all" : String(attributes[attribute]);
    sums[key] = (sums[key] ?? 0) + value;
  }
  return sums;
}

const kind = "messaging.destination.name";
const outcome = "messaging.venturi.outcome";

test("jobs are counted as enqueued or as merged", async () => {
  expect(await points("venturi.jobs.enqueued", kind)).toEqual({ work: 4, keyed: 1, later: 1 });
  expect(await points("venturi.jobs.merged", outcome)).toEqual({ kept: 1 });
});

test("claims are counted by kind, settled runs by outcome as the journal has them", async () => {
  expect(await points("venturi.jobs.claimed", kind)).toEqual({ work: 5, keyed: 1 });
  expect(await points("venturi.jobs.settled", outcome)).toEqual({
    completed: 3,
    paused: 1,
    retried: 1,
    dead: 1,
  });
});

test("durations and latencies have a value for every run, call and claim", async () => {
  expect(await points("messaging.process.duration", "error.type")).toEqual({
    undefined: 4,
    RangeError: 1,
    TaskError: 1,
  });
  expect(await points("venturi.job.latency")).toEqual({ all: 6 });
  expect(await points("venturi.settle.latency")).toEqual({ all: 6 });
  const operations = await points(
    "messaging.client.operation.duration",
    "messaging.operation.name",
  );
  expect(operations["enqueue"]).toBe(4);
  expect(operations["claim"]).toBeGreaterThanOrEqual(2);
});

test("gauges say how the queue stands whenever they are asked, zero for what is gone", async () => {
  using gauges = observeStats(queue, { meterProvider });
  expect(await points("venturi.jobs.pending", kind)).toEqual({ work: 1, later: 1 });
  expect(await points("venturi.jobs.scheduled", kind)).toEqual({ work: 1, later: 1 });
  expect(await points("venturi.jobs.dead", kind)).toEqual({ work: 1 });
  expect(await points("venturi.jobs.running")).toEqual({ all: 0 });
  expect(await points("venturi.workers")).toEqual({ all: 0 });
  for (const { id } of (await queue.jobs({ kind: "later" })).jobs) await queue.cancel(id);
  const due = await queue.enqueue(Work({ n: 1 }));
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(await points("venturi.jobs.pending", kind)).toEqual({ work: 2, later: 0 });
  const age = await points("venturi.jobs.oldest_pending_age", kind);
  expect(age["work"]).toBeGreaterThanOrEqual(0.004);
  expect(age["work"]).toBeLessThan(5);
  await queue.cancel(due);
  gauges.stop();
});
