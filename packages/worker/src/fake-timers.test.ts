import { defineTask, Merge, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { drain, enqueued, ManualClock, MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { deferred } from "./testing/signals.ts";
import { Worker } from "./worker.ts";

const Total = defineTask({
  kind: "total",
  payload: v.object({ n: v.number() }),
  carry: v.optional(v.object({ rounds: v.number() }), { rounds: 0 }),
  dedupKey: () => "all",
  merge: ({ n }, existing) => Merge.with({ n: n + existing.payload.n }),
});

const Wait = defineTask({ kind: "wait", payload: v.object({ ms: v.number() }) });

function stage() {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const totals: number[] = [];
  const begun = deferred();
  const worker = new Worker(store).register(Total, async ({ n }, ctx) => {
    begun.resolve();
    ctx.carry.rounds += 1;
    if (ctx.carry.rounds < 3) return Outcome.pauseFor(ctx.carry.rounds === 1 ? 0 : "1h");
    totals.push(n);
    return Outcome.completed();
  });
  worker.register(Wait, ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms)));
  return { clock, store, queue: new Queue(store), worker, totals, begun };
}

const timers = [
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "performance",
  "Date",
];

afterEach(() => {
  vi.useRealTimers();
});

describe.each([[timers], ...timers.map((timer) => [[timer]])])(
  "where a test has faked %j",
  (toFake) => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: toFake as ["Date"] });
    });

    test("what takes no time needs nobody to advance it", async () => {
      const { clock, store, queue, worker, totals } = stage();
      await Promise.all([1, 2, 3].map((n) => queue.enqueue(Total({ n }))));
      expect((await enqueued(store, Total)).map(({ payload }) => payload.n)).toEqual([6]);
      expect(await drain(worker)).toMatchObject({ paused: 2, completed: 0 });
      clock.advance("1h");
      expect(await worker.runOnce()).toMatchObject({ completed: 1 });
      expect(totals).toEqual([6]);
      await worker.stop();
    });

    test("a worker that sleeps is woken by a job, and stops", async () => {
      const { queue, worker, begun } = stage();
      const result = worker.run();
      await queue.enqueue(Total({ n: 1 }));
      await begun.promise;
      await worker.stop();
      expect(await result).toEqual({ unreleased: [] });
    });
  },
);

test("a handler that waits for fake timers goes on when they are advanced", async () => {
  vi.useFakeTimers();
  const { worker, queue } = stage();
  await queue.enqueue(Wait({ ms: 20 }));
  const result = worker.runOnce();
  await vi.advanceTimersByTimeAsync(20);
  expect(await result).toMatchObject({ completed: 1 });
});
