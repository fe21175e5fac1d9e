import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import { defineTask, type RunEvent, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { heardWhile } from "./testing/heard.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

afterEach(() => expectInvariants(pool));

/** Keeps what would have ended the process, until it is stopped. */
function collectUncaught() {
  const others = process.rawListeners("uncaughtException");
  const uncaught: unknown[] = [];
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => uncaught.push(error));
  const stop = (): readonly unknown[] => {
    process.removeAllListeners("uncaughtException");
    for (const listener of others) process.on("uncaughtException", listener as () => void);
    return uncaught;
  };
  return { stop };
}

describe("a handler is called", () => {
  const runs = channel("venturi:run");
  const Task = defineTask({ kind: "inside", payload });
  const work = (handler: () => unknown) =>
    new Worker(store).register(Task, handler as () => undefined).runOnce();

  test("inside of the stores that are bound to the channel, to its end", async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    runs.bindStore(context, (event) => (event as RunEvent).run.id);
    try {
      await work(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(context.getStore());
      });
    } finally {
      runs.unbindStore(context);
    }
    expect(seen.sort()).toEqual([...ids].sort());
    expect(context.getStore()).toBeUndefined();
  });

  test("inside of the functions that listeners add, the first one innermost", async () => {
    await queue.enqueue(Task({ n: 1 }));
    const order: string[] = [];
    const wrapper =
      (name: string) =>
      <T>(call: () => T): T => {
        order.push(`${name} begins`);
        try {
          return call();
        } finally {
          order.push(`${name} ends`);
        }
      };
    await heardWhile(
      () => work(() => void order.push("handler")),
      (event) => {
        if (event.channel === "venturi:run" && event.event === "start")
          event.around.push(wrapper("a"), wrapper("b"));
      },
    );
    expect(order).toEqual(["b begins", "a begins", "handler", "a ends", "b ends"]);
  });

  test("although listeners of every channel throw, and the worker goes on", async () => {
    const uncaught = collectUncaught();
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    let calls = 0;
    const heard = await heardWhile(
      () =>
        work(() => {
          calls += 1;
        }),
      () => {
        throw new Error("listener");
      },
    );
    // Node throws what a listener threw on the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(uncaught.stop().length).toBe(heard.length);
    expect(calls).toBe(2);
    for (const id of ids) expect((await queue.job(id))?.status).toBe("completed");
  });

  test.each([
    ["calls it twice", <T>(call: () => T): T => call() ?? call()],
    ["never calls it", <T>(_: () => T): T => undefined as T],
    [
      "throws before",
      () => {
        throw new Error("wrapper");
      },
    ],
    [
      "throws afterwards",
      <T>(call: () => T): T => {
        call();
        throw new Error("wrapper");
      },
    ],
  ])("once by a wrapper that %s, and what it comes to counts", async (name, wrap) => {
    const uncaught = collectUncaught();
    let calls = 0;
    const id = await queue.enqueue(Task({ n: 1 }));
    await heardWhile(
      () =>
        work(() => {
          calls += 1;
          throw TaskError.permanent("the handler's own");
        }),
      (event) => {
        if (event.channel === "venturi:run" && event.event === "start") event.around.push(wrap);
      },
    );
    expect(uncaught.stop().length).toBe(name.startsWith("throws") ? 1 : 0);
    expect(calls).toBe(1);
    expect((await queue.journal(id)).map(({ note }) => note)).toEqual(["the handler's own"]);
  });
});
