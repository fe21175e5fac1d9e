import { channel } from "node:diagnostics_channel";
import { context, diag, propagation, trace } from "@opentelemetry/api";
import { defineTask, type Events, Outcome, type RunFacts, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { ManualClock, MemoryStore } from "@venturi/testing";
import { Worker } from "@venturi/worker";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Instrumentation, instrument } from "./index.ts";
import { MemorySdk } from "./testing/telemetry.ts";

const sdk = new MemorySdk();
const tracer = trace.getTracer("test");
const Send = defineTask({ kind: "send", payload: v.object({ to: v.string() }) });
const Other = defineTask({ kind: "other", payload: v.object({}) });
const Keyed = defineTask({
  kind: "keyed",
  payload: v.object({}),
  dedupKey: () => "one",
  merge: "keep",
});

let clock: ManualClock;
let store: MemoryStore;
let queue: ReturnType<typeof newQueue>;
let telemetry: Instrumentation;
const newQueue = () => new Queue(store);

beforeEach(() => {
  sdk.reset();
  clock = new ManualClock();
  store = new MemoryStore({ clock });
  queue = newQueue();
  telemetry = instrument({ metrics: false });
});
afterEach(() => telemetry.stop());

const spans = async () => (await sdk.collect()).spans;
const spanNamed = async (name: string) => {
  const found = (await spans()).find((span) => span.name === name);
  if (found === undefined) throw new Error(`no span named ${name}`);
  return found;
};
/** Runs `body` inside of a span of the application. */
const inside = <T>(body: () => Promise<T>): Promise<T> =>
  tracer.startActiveSpan("request", async (span) => {
    try {
      return await body();
    } finally {
      span.end();
    }
  });
const work = (handler: () => unknown = () => undefined) =>
  new Worker(store, { name: "w", concurrency: 2 })
    .register(Send, handler as () => undefined)
    .register(Other, () => undefined)
    .register(Keyed, () => undefined)
    .runOnce();

describe("an enqueue", () => {
  test("is a PRODUCER span inside of the caller's, by the messaging conventions", async () => {
    const id = await inside(() => queue.enqueue(Send({ to: "a" }), { priority: "high" }));
    const span = await spanNamed("enqueue send");
    const request = await spanNamed("request");
    expect(span).toMatchObject({
      kind: "PRODUCER",
      traceId: request.traceId,
      parentSpanId: request.spanId,
      status: "UNSET",
      attributes: {
        "messaging.system": "venturi",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "send",
        "messaging.message.id": id,
        "messaging.venturi.priority": "high",
        "messaging.venturi.outcome": "enqueued",
      },
    });
  });

  test("puts the trace context and the baggage into the job's headers, beside its own", async () => {
    const baggage = propagation.createBaggage({ tenant: { value: "t1" } });
    const id = await context.with(propagation.setBaggage(context.active(), baggage), () =>
      queue.enqueue(Send({ to: "a" }), { headers: { "request-id": "r1" } }),
    );
    const { traceId, spanId } = await spanNamed("enqueue send");
    expect((await queue.job(id))?.headers).toEqual({
      "request-id": "r1",
      traceparent: `00-${traceId}-${spanId}-01`,
      baggage: "tenant=t1",
    });
  });

  test("leaves a trace context alone that its caller gave the job, and links to it", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const id = await queue.enqueue(Send({ to: "a" }), { headers: { traceparent } });
    expect((await queue.job(id))?.headers).toEqual({ traceparent });
    expect((await spanNamed("enqueue send")).links).toEqual(["b7ad6b7169203331"]);
  });

  test("of many jobs is one span, named after their kind if they have one", async () => {
    await queue.enqueueMany([Send({ to: "a" }), Send({ to: "b" })]);
    await queue.enqueueMany([Send({ to: "a" }), Other({})]);
    const [same, mixed] = await spans();
    expect(same).toMatchObject({ name: "enqueue send" });
    expect(same?.attributes).toMatchObject({ "messaging.batch.message_count": 2 });
    expect(mixed).toMatchObject({ name: "enqueue" });
    expect(mixed?.attributes).not.toHaveProperty("messaging.destination.name");
  });

  test("that was merged says how, and into which job", async () => {
    const first = await queue.enqueue(Keyed({}));
    await queue.enqueue(Keyed({}));
    expect((await spans())[1]?.attributes).toMatchObject({
      "messaging.venturi.outcome": "kept",
      "messaging.venturi.merged_into": first,
    });
  });

  test("that fails is a span with the error's code, and without its text", async () => {
    const id = await queue.enqueue(Send({ to: "a" }));
    await queue.enqueue(Other({}), { id }).catch(() => undefined);
    const span = await spanNamed("enqueue other");
    expect(span).toMatchObject({ status: "ERROR", attributes: { "error.type": "id-conflict" } });
  });
});

describe("a run", () => {
  test("is a CONSUMER span, a child of the enqueue's and linked to it", async () => {
    const id = await queue.enqueue(Send({ to: "a" }));
    await work();
    const enqueue = await spanNamed("enqueue send");
    expect(await spanNamed("run send")).toMatchObject({
      kind: "CONSUMER",
      traceId: enqueue.traceId,
      parentSpanId: enqueue.spanId,
      links: [enqueue.spanId],
      status: "UNSET",
      attributes: {
        "messaging.system": "venturi",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "send",
        "messaging.message.id": id,
        "messaging.client.id": "w",
        "messaging.venturi.run_count": 1,
        "messaging.venturi.failure_count": 0,
        "messaging.venturi.priority": "normal",
        "messaging.venturi.latency": expect.any(Number),
        "messaging.venturi.outcome": "completed",
      },
    });
  });

  test("is the root of a trace of its own where that is asked for, and linked all the same", async () => {
    telemetry.stop();
    telemetry = instrument({ metrics: false, runSpans: "roots" });
    await queue.enqueue(Send({ to: "a" }));
    await work();
    const enqueue = await spanNamed("enqueue send");
    const run = await spanNamed("run send");
    expect(run).toMatchObject({ parentSpanId: null, links: [enqueue.spanId] });
    expect(run.traceId).not.toBe(enqueue.traceId);
  });

  test("is what its handler's spans and enqueues are inside of, with the enqueue's baggage", async () => {
    const baggage = propagation.createBaggage({ tenant: { value: "t1" } });
    await context.with(propagation.setBaggage(context.active(), baggage), () =>
      queue.enqueue(Send({ to: "a" })),
    );
    let tenant: string | undefined;
    await work(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      tenant = propagation.getActiveBaggage()?.getEntry("tenant")?.value;
      tracer.startSpan("query").end();
      await queue.enqueue(Other({}), { delay: "1h" });
    });
    const run = await spanNamed("run send");
    expect(tenant).toBe("t1");
    expect((await spanNamed("query")).parentSpanId).toBe(run.spanId);
    expect((await spanNamed("enqueue other")).parentSpanId).toBe(run.spanId);
  });

  test("does not pass its context on to the next one", async () => {
    telemetry.stop();
    await queue.enqueueMany([Send({ to: "a" }), Send({ to: "b" })]);
    telemetry = instrument({ metrics: false });
    const active: unknown[] = [];
    await new Worker(store, { concurrency: 1 })
      .register(Send, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        active.push(trace.getActiveSpan()?.spanContext().spanId);
      })
      .runOnce();
    const runs = (await spans()).filter(({ name }) => name === "run send");
    expect(runs.map(({ parentSpanId }) => parentSpanId)).toEqual([null, null]);
    expect(active).toEqual(runs.map(({ spanId }) => spanId));
  });

  test.each([
    ["retried", "ERROR", "TypeError", () => Promise.reject(new TypeError("fetch failed s3cr3t"))],
    ["dead", "ERROR", "TaskError", () => Promise.reject(TaskError.permanent("s3cr3t"))],
    ["paused", "UNSET", undefined, () => Outcome.pauseFor("1h", "s3cr3t")],
  ])("that ends %s says so, without what the error or the note says", async (...row) => {
    const [outcome, status, type, handler] = row;
    await queue.enqueue(Send({ to: "s3cr3t" }));
    await work(handler);
    const run = await spanNamed("run send");
    expect(run.status).toBe(status);
    expect(run.attributes["messaging.venturi.outcome"]).toBe(outcome);
    expect(run.attributes["error.type"]).toBe(type);
    expect(JSON.stringify(await spans())).not.toContain("s3cr3t");
  });

  test("whose payload does not decode is a span as well", async () => {
    const Changed = defineTask({ kind: "send", payload: v.object({ from: v.string() }) });
    await queue.enqueue(Send({ to: "a" }));
    await new Worker(store).register(Changed, () => undefined).runOnce();
    expect(await spanNamed("run send")).toMatchObject({
      status: "ERROR",
      attributes: { "messaging.venturi.outcome": "dead", "error.type": "VenturiError" },
    });
  });

  test("each time, retried and paused, is in the trace of the enqueue", async () => {
    await queue.enqueue(Send({ to: "a" }));
    let runs = 0;
    const handler = () => {
      runs += 1;
      if (runs === 1) throw new Error("once");
      return runs === 2 ? Outcome.pauseFor(0) : undefined;
    };
    for (let round = 0; round < 3; round += 1) {
      await work(handler);
      clock.advance("1m");
    }
    const enqueue = await spanNamed("enqueue send");
    const told = (await spans()).filter(({ name }) => name === "run send");
    expect(told.map(({ attributes }) => attributes["messaging.venturi.outcome"])).toEqual([
      "retried",
      "paused",
      "completed",
    ]);
    expect(told.map(({ attributes }) => attributes["messaging.venturi.run_count"])).toEqual([
      1, 2, 3,
    ]);
    for (const run of told) {
      expect(run).toMatchObject({ traceId: enqueue.traceId, links: [enqueue.spanId] });
    }
  });
});

describe("a claim", () => {
  test("that brings jobs is a CLIENT span in a trace of its own, linked to where they come from", async () => {
    await queue.enqueue(Send({ to: "a" }));
    await queue.enqueue(Other({}));
    await work();
    const claims = (await spans()).filter(({ name }) => name.startsWith("claim"));
    expect(claims).toMatchObject([
      {
        name: "claim",
        kind: "CLIENT",
        parentSpanId: null,
        links: [
          (await spanNamed("enqueue send")).spanId,
          (await spanNamed("enqueue other")).spanId,
        ],
        attributes: {
          "messaging.operation.name": "claim",
          "messaging.operation.type": "receive",
          "messaging.client.id": "w",
          "messaging.batch.message_count": 2,
        },
      },
    ]);
  });

  test("has no span where that is not asked for", async () => {
    telemetry.stop();
    telemetry = instrument({ metrics: false, claimSpans: false });
    await queue.enqueue(Send({ to: "a" }));
    await work();
    expect((await spans()).map(({ name }) => name)).toEqual(["enqueue send", "run send"]);
  });
});

describe("a run that cannot be settled", () => {
  const run: RunFacts = {
    id: "0",
    kind: "send",
    priority: "normal",
    headers: {},
    runCount: 1,
    failureCount: 0,
  };
  const publish = <Name extends keyof Events>(name: Name, event: Events[Name]) =>
    channel(name).publish(event);
  const worker = "w";
  const runIt = () => {
    publish("venturi:run", { event: "start", worker, run, latencyMs: 0, around: [] });
    const error = null;
    publish("venturi:run", {
      event: "end",
      worker,
      run,
      result: "completed",
      error,
      durationMs: 5,
    });
  };

  test.each(["lost", "dropped"] as const)("as its claim was %s, says so", async (event) => {
    runIt();
    expect(await spans()).toEqual([]);
    publish("venturi:settle", { event, worker, run, latencyMs: 1 });
    const span = await spanNamed("run send");
    expect(span.status).toBe("ERROR");
    expect(span.attributes["messaging.venturi.outcome"]).toBe(event);
    expect(span.durationMs).toBe(5);
  });

  test("before its worker's session ends is handed on then, without an outcome", async () => {
    runIt();
    publish("venturi:worker", { event: "stopped", worker: "another", unreleased: 0 });
    expect(await spans()).toEqual([]);
    publish("venturi:worker", { event: "stopped", worker, unreleased: 1 });
    const span = await spanNamed("run send");
    expect(span.attributes).not.toHaveProperty("messaging.venturi.outcome");
    expect(span.durationMs).toBe(5);
  });

  test("before the recording is stopped is handed on then", async () => {
    runIt();
    telemetry.stop();
    expect((await spanNamed("run send")).durationMs).toBe(5);
  });
});

test("a tracer that throws hurts no job, and is reported to OpenTelemetry's own log", async () => {
  telemetry.stop();
  const fail = (): never => {
    throw new Error("no");
  };
  const broken = { startSpan: fail, startActiveSpan: fail };
  const reported: unknown[] = [];
  const ignore = (): void => undefined;
  const log = { info: ignore, warn: ignore, debug: ignore, verbose: ignore };
  diag.setLogger({ ...log, error: (...args) => void reported.push(args) });
  telemetry = instrument({ metrics: false, tracerProvider: { getTracer: () => broken } });
  const id = await queue.enqueue(Send({ to: "a" }));
  expect((await work()).completed).toBe(1);
  expect((await queue.job(id))?.status).toBe("completed");
  expect(reported.length).toBeGreaterThan(0);
  diag.disable();
});

test("a second instrument records nothing more, and says so", async () => {
  const reported: unknown[] = [];
  const ignore = (): void => undefined;
  const log = { info: ignore, error: ignore, debug: ignore, verbose: ignore };
  diag.setLogger({ ...log, warn: (message) => void reported.push(message) });
  const second = instrument();
  const third = instrument();
  expect(reported).toEqual([
    expect.stringContaining("spans are recorded already"),
    expect.stringContaining("spans are recorded already"),
    expect.stringContaining("metrics are recorded already"),
  ]);
  third.stop();
  await queue.enqueue(Send({ to: "a" }));
  expect(await spans()).toHaveLength(1);
  second.stop();
  await queue.enqueue(Send({ to: "b" }));
  expect(await spans()).toHaveLength(2);
  diag.disable();
});

test("what was stopped can be recorded again, and another stop does not end that", async () => {
  telemetry.stop();
  const first = telemetry;
  telemetry = instrument({ metrics: false });
  first.stop();
  const third = instrument({ metrics: false });
  await queue.enqueue(Send({ to: "a" }));
  expect(await spans()).toHaveLength(1);
  third.stop();
});

test("nothing is recorded any more once it is stopped, and headers are left alone", async () => {
  telemetry.stop();
  telemetry.stop();
  const id = await queue.enqueue(Send({ to: "a" }));
  await work();
  expect(await spans()).toEqual([]);
  expect((await queue.job(id))?.headers).toEqual({});
});
