import { Backoff, defineTask, type JobId, Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { claimAndDie } from "./testing/gone.ts";
import { heardWhile, on } from "./testing/heard.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const backoff = new Backoff({ base: 1, cap: 1 });
const ms = expect.any(Number);

afterEach(() => expectInvariants(pool));

describe("a job that runs", () => {
  test("is told of when it is claimed, started, ended and settled, each time about the same run", async () => {
    const Task = defineTask({ kind: "told", payload });
    const id = await queue.enqueue(Task({ n: 1 }), { priority: "high", headers: { a: "b" } });
    const heard = await heardWhile(() =>
      new Worker(store, { name: "w", concurrency: 2 }).register(Task, () => undefined).runOnce(),
    );
    const kind = Task.kind;
    const run = { id, kind, priority: "high", headers: { a: "b" }, runCount: 1, failureCount: 0 };
    expect(heard).toEqual([
      { channel: "venturi:worker", event: "started", worker: "w", kinds: [kind], concurrency: 2 },
      {
        channel: "venturi:claim",
        event: "claimed",
        worker: "w",
        jobs: [{ ...run, latencyMs: ms }],
        durationMs: ms,
      },
      { channel: "venturi:run", event: "start", worker: "w", run, latencyMs: ms, around: [] },
      {
        channel: "venturi:run",
        event: "end",
        worker: "w",
        run,
        result: "completed",
        error: null,
        durationMs: ms,
      },
      {
        channel: "venturi:settle",
        event: "settled",
        worker: "w",
        run,
        outcome: "completed",
        attempt: null,
        latencyMs: ms,
      },
      { channel: "venturi:worker", event: "stopped", worker: "w", unreleased: 0 },
    ]);
    const runs = new Set(heard.flatMap((event) => ("run" in event ? [event.run] : [])));
    expect(runs.size).toBe(1);
    for (const event of heard) {
      for (const value of Object.values(event))
        if (typeof value === "number") expect(value).toBeGreaterThanOrEqual(0);
    }
  });

  test("is told of with what it came to, the error's name and code, and which failure it was", async () => {
    const Fails = defineTask({ kind: "fails", payload, backoff });
    const Pauses = defineTask({ kind: "pauses", payload });
    const Dies = defineTask({ kind: "dies", payload });
    await queue.enqueueMany([Fails({ n: 1 }), Pauses({ n: 1 }), Dies({ n: 1 })]);
    const worker = new Worker(store)
      .register(Fails, () => {
        throw Object.assign(new TypeError("fetch failed"), { code: "ECONNREFUSED" });
      })
      .register(Pauses, () => Outcome.pauseFor("1h"))
      .register(Dies, () => {
        throw TaskError.permanent(new SyntaxError("no"));
      });
    const heard = await heardWhile(() => worker.runOnce());
    const ends = on(heard, "venturi:run").flatMap((event) =>
      event.event === "end" ? [[event.run.kind, event.result, event.error]] : [],
    );
    expect(ends).toEqual([
      ["fails", "failed", { name: "TypeError", code: "ECONNREFUSED" }],
      ["pauses", "paused", null],
      ["dies", "failed", { name: "SyntaxError", code: null }],
    ]);
    const settled = on(heard, "venturi:settle").flatMap((event) =>
      event.event === "settled" ? [[event.run.kind, event.outcome, event.attempt]] : [],
    );
    expect(settled.sort()).toEqual([
      ["dies", "dead", 1],
      ["fails", "retried", 1],
      ["pauses", "paused", null],
    ]);
  });

  test("has an end but no start where its payload does not decode", async () => {
    const Old = defineTask({ kind: "changed", payload });
    const New = defineTask({ kind: "changed", payload: v.object({ m: v.number() }) });
    await queue.enqueue(Old({ n: 1 }));
    const heard = await heardWhile(() =>
      new Worker(store).register(New, () => undefined).runOnce(),
    );
    expect(on(heard, "venturi:run")).toMatchObject([
      { event: "end", result: "failed", error: { name: "VenturiError", code: "validation" } },
    ]);
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", outcome: "dead" }]);
  });

  test("is told of without its payload, carry, note, attachment and the text of its error", async () => {
    const secret = "s3cr3t";
    const Task = defineTask({
      kind: "secret",
      payload: v.object({ text: v.string() }),
      carry: v.optional(v.object({ text: v.string() }), { text: "" }),
      backoff,
    });
    await queue.enqueueMany([1, 2, 3].map(() => Task({ text: secret })));
    let runs = 0;
    const worker = new Worker(store, { concurrency: 1 }).register(Task, (_, ctx) => {
      ctx.carry.text = secret;
      ctx.attach(secret);
      runs += 1;
      if (runs === 1) throw new Error(secret);
      return runs === 2 ? Outcome.pauseFor("1h", secret) : Outcome.completed(secret);
    });
    const heard = await heardWhile(() => worker.runOnce());
    expect(on(heard, "venturi:settle").length).toBe(3);
    expect(JSON.stringify(heard)).not.toContain(secret);
  });
});

describe("claims", () => {
  test("that are handed back unstarted are told of as claimed and as handed back", async () => {
    const Task = defineTask({ kind: "ahead", payload });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 }), Task({ n: 3 })]);
    const started = deferred();
    const worker = new Worker(store, { concurrency: 1, prefetch: 2, shutdownTimeout: "10s" });
    worker.register(Task, (_, ctx) => {
      started.resolve();
      return new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
    });
    const heard = await heardWhile(() => running(worker, () => started.promise));
    const claimed = on(heard, "venturi:claim").flatMap((event) =>
      event.event === "claimed" ? event.jobs.map(({ id }) => id) : [],
    );
    const back = on(heard, "venturi:claim").filter(({ event }) => event === "handed-back");
    expect(claimed).toEqual(ids);
    expect(back).toEqual(
      ids.slice(1).map((id) => ({
        event: "handed-back",
        worker: expect.any(String),
        id,
        kind: "ahead",
        runCount: 1,
        channel: "venturi:claim",
      })),
    );
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", run: { id: ids[0] } }]);
    await Promise.all(ids.map((id) => queue.cancel(id)));
  });

  test("of a worker that is gone are told of when they have been recovered, also as dead at their backstop", async () => {
    const Task = defineTask({ kind: "gone", payload, backoff });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    await claimAndDie(store, { kind: Task.kind, workerTimeoutMs: 200, backstop: null });
    await claimAndDie(store, { kind: Task.kind, workerTimeoutMs: 200, backstop: 1 });
    const entries: Promise<string | undefined>[] = [];
    const worker = new Worker(store, { name: "w", workerTimeout: 200 }).register(
      Task,
      () => undefined,
    );
    const heard = await heardWhile(
      () =>
        running(worker, () =>
          until(async () => {
            const [first, second] = await Promise.all(ids.map((id) => queue.job(id)));
            return first?.status === "completed" && second?.status === "dead";
          }),
        ),
      (event) => {
        if (event.channel === "venturi:recover")
          entries.push(queue.journal(event.id).then(([entry]) => entry?.outcome));
      },
    );
    const common = { worker: "w", kind: "gone", runCount: 1, attempt: 1, reason: "silent" };
    const recovered = on(heard, "venturi:recover");
    expect(recovered.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(recovered).toMatchObject(
      recovered.map(({ id }) =>
        id === ids[0]
          ? { ...common, outcome: "stale-recovered" }
          : { ...common, outcome: "dead", delayMs: 0 },
      ),
    );
    expect(await Promise.all(entries)).toEqual(recovered.map(({ outcome }) => outcome));
    expect((await queue.journal(ids[1] as JobId)).map(({ outcome }) => outcome)).toEqual(["dead"]);
  });
});
