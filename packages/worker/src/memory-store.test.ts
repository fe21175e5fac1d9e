import { defineTask, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { drain, enqueued, ManualClock, MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { expect, expectTypeOf, it } from "vitest";
import { wrapStore } from "./testing/wrap-store.ts";
import { Worker } from "./worker.ts";

const Greet = defineTask({ kind: "greet", payload: v.object({ name: v.string() }) });
const Count = defineTask({
  kind: "count",
  payload: v.object({ to: v.number() }),
  carry: v.optional(v.object({ at: v.number() }), { at: 0 }),
});

function setUp() {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  return { clock, store, queue: new Queue(store) };
}

it("a worker runs the jobs of a store in memory until none is due", async () => {
  const { store, queue } = setUp();
  const names: string[] = [];
  await using worker = new Worker(store)
    .register(Greet, ({ name }) => {
      names.push(name);
    })
    .register(Count, async ({ to }, ctx) => {
      ctx.carry.at += 1;
      if (ctx.carry.at < to) return Outcome.pauseFor(0);
      await queue.enqueue(Greet({ name: `number ${to}` }));
      return Outcome.completed();
    });
  await queue.enqueueMany([Greet({ name: "Ada" }), Count({ to: 3 })]);
  expect(await drain(worker)).toEqual({ completed: 3, paused: 2, retried: 0, dead: 0 });
  expect(names).toEqual(["Ada", "number 3"]);
});

it("what is due later runs once the clock has been moved there", async () => {
  const { clock, store, queue } = setUp();
  await using worker = new Worker(store).register(Greet, () => undefined);
  await queue.enqueue(Greet({ name: "later" }), { delay: "1h" });
  expect((await drain(worker)).completed).toBe(0);
  clock.advance("1h");
  expect((await drain(worker)).completed).toBe(1);
});

it("a waiting worker is woken by an enqueue", async () => {
  const store = new MemoryStore();
  const stop = new AbortController();
  await using worker = new Worker(store, { pollMax: "60s" }).register(Greet, () => stop.abort());
  const running = worker.run({ signal: stop.signal });
  await new Queue(store).enqueue(Greet({ name: "now" }));
  expect(await running).toEqual({ unreleased: [] });
});

it("no claim goes out after a stop, at whatever instant after a claim's answer it comes", async () => {
  for (let turns = 0; turns < 12; turns += 1) {
    const { store, queue } = setUp();
    await queue.enqueueMany(Array.from({ length: 600 }, (_, n) => Greet({ name: `${n}` })));
    let claims = 0;
    let stoppedAt = 0;
    const stopAfter = async () => {
      for (let turn = 0; turn < turns; turn += 1) await null;
      stoppedAt = claims;
      void worker.stop();
    };
    const watched = wrapStore(store, (plain) => ({
      claim: async (request) => {
        claims += 1;
        const result = await plain.claim(request);
        if (claims === 1) void stopAfter();
        return result;
      },
    }));
    const worker = new Worker(watched, { concurrency: 1, prefetch: 499 });
    worker.register(Greet, () => undefined);
    await worker.run();
    expect([turns, claims]).toEqual([turns, stoppedAt]);
  }
});

it("enqueued lists the pending jobs of a task, oldest first, from a store or a queue", async () => {
  const { store, queue } = setUp();
  await queue.enqueueMany([Greet({ name: "a" }), Count({ to: 1 }), Greet({ name: "b" })]);
  for (const source of [store, queue]) {
    const jobs = await enqueued(source, Greet);
    expect(jobs.map(({ payload }) => payload.name)).toEqual(["a", "b"]);
    expectTypeOf(jobs[0]?.payload).toEqualTypeOf<{ name: string } | undefined>();
  }
  await using worker = new Worker(store).register(Greet, () => undefined);
  await drain(worker);
  expect(await enqueued(store, Greet)).toEqual([]);
});

it("enqueued reads further pages", async () => {
  const { queue } = setUp();
  await queue.enqueueMany(Array.from({ length: 1_001 }, (_, n) => Greet({ name: `${n}` })));
  const names = (await enqueued(queue, Greet)).map(({ payload }) => payload.name);
  expect(names).toHaveLength(1_001);
  expect([names[0], names.at(-1)]).toEqual(["0", "1000"]);
});
