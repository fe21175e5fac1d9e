import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { Worker } from "./worker.ts";

const Task = defineTask({ kind: "t", payload: v.object({ n: v.number() }) });

/** A schema that answers later, as one that asks a database does. */
const later = v.pipeAsync(
  v.object({ n: v.number() }),
  v.checkAsync(async () => true),
);
const Later = defineTask({ kind: "later", payload: later });

describe("a handler that ends with its call", () => {
  test("and stops its worker is the last that is called; the others are handed back", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    const ids = await queue.enqueueMany(Array.from({ length: 20 }, (_, n) => Task({ n })));
    const called: number[] = [];
    const worker = new Worker(store, { concurrency: 20 }).register(Task, ({ n }) => {
      called.push(n);
      if (n === 3) void worker.stop();
    });
    await worker.run();
    expect(called).toEqual([0, 1, 2, 3]);
    const jobs = await Promise.all(ids.map((id) => queue.job(id)));
    expect(jobs.filter((job) => job?.status === "completed")).toHaveLength(4);
    expect(jobs.filter((job) => job?.status === "pending")).toHaveLength(16);
  });

  test("and stops its worker may give up at once, since it has been told to", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    const id = await queue.enqueue(Task({ n: 0 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      void worker.stop();
      ctx.signal.throwIfAborted();
    });
    await worker.run();
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 0 });
    expect(await queue.journal(id)).toMatchObject([{ outcome: "released" }]);
  });

  test("and stops its worker keeps those from being called whose payloads are being decoded", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Later({ n })));
    const called: number[] = [];
    const worker = new Worker(store).register(Later, ({ n }) => {
      called.push(n);
      void worker.stop();
    });
    await worker.run();
    expect(called).toEqual([0]);
    expect((await queue.stats()).pendingByKind).toMatchObject({ later: 4 });
  });
});
