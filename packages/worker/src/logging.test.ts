import { defineTask, type JobId, type StaleClaim, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { systemClock } from "./clock.ts";
import { WorkerEvents } from "./events.ts";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";

const Task = defineTask({ kind: "logged", payload: v.object({ secret: v.string() }), backstop: 1 });
const job = Task({ secret: "hunter2" });

function fixture(options: { shutdownTimeout?: number } = {}) {
  const store = new MemoryStore();
  const { logger, records } = recordingLogger();
  const worker = new Worker(store, { name: "w", concurrency: 2, logger, ...options });
  return { queue: new Queue(store), worker, records, logger };
}

describe("a job that is dead is logged, without what its error says", () => {
  test.each([
    ["permanently", () => TaskError.permanent("refused hunter2")],
    ["for the last time", () => new Error("refused hunter2")],
  ])("after it failed %s", async (_, error) => {
    const { queue, worker, records } = fixture();
    const id = await queue.enqueue(job);
    worker.register(Task, () => {
      throw error();
    });
    expect(await worker.runOnce()).toMatchObject({ dead: 1 });
    const fields = { kind: "logged", jobId: id, runCount: 1, failureCount: 1 };
    expect(records).toEqual([{ level: "warn", message: "a job is dead", fields }]);
    expect(await queue.job(id)).toMatchObject({ status: "dead", runCount: 1, failureCount: 1 });
  });

  test("when its last run was lost with its worker", () => {
    const { logger, records } = recordingLogger();
    const events = new WorkerEvents({ worker: "w", clock: systemClock, logger });
    const jobId = "01ARZ3NDEKTSV4RRFFQ69G5FAV" as JobId;
    const claim = { jobId, kind: "logged", runCount: 3, failureCount: 1 } as StaleClaim;
    const recovery = { jobId, runCount: 3, holder: "1" as never, delayMs: 0, note: "gone" };
    events.recovered(claim, { ...recovery, outcome: "stale-recovered" });
    expect(records).toEqual([]);
    events.recovered(claim, { ...recovery, outcome: "dead" });
    const fields = { kind: "logged", jobId, runCount: 3, failureCount: 2 };
    expect(records).toEqual([{ level: "warn", message: "a job is dead", fields }]);
  });

  test("but not one that is retried, nor one that is completed", async () => {
    const { queue, worker, records } = fixture();
    const Other = defineTask({ kind: "other", payload: v.object({}) });
    await queue.enqueueMany([job, Other({})]);
    worker
      .register(Task, () => undefined)
      .register(Other, () => {
        throw new Error("again");
      });
    expect(await worker.runOnce()).toMatchObject({ completed: 1, retried: 1 });
    expect(records).toEqual([]);
  });
});

test("a worker that has started says what it works on", async () => {
  const { worker, records } = fixture();
  worker.register(Task, () => undefined);
  await running(worker, () => until(() => records.length > 0));
  const fields = { name: "w", kinds: ["logged"], concurrency: 2 };
  expect(records).toEqual([{ level: "info", message: "worker started", fields }]);
});

test("handlers that did not stop in time are named", async () => {
  const { queue, worker, records } = fixture({ shutdownTimeout: 20 });
  const [id] = await queue.enqueueMany([job]);
  const [started, finish] = [deferred(), deferred()];
  worker.register(Task, () => {
    started.resolve();
    return finish.promise;
  });
  await running(worker, () => started.promise);
  finish.resolve();
  expect(records.filter(({ level }) => level !== "info")).toEqual([
    {
      level: "warn",
      message: "handlers did not stop within the shutdown timeout; their jobs are released",
      fields: { jobs: 1, jobIds: [id] },
    },
  ]);
});
