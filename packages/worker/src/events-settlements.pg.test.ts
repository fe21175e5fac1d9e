import { Backoff, defineTask, type JobContext } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore, type PostgresTransaction } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { takeAway } from "./testing/gone.ts";
import { heardWhile, on } from "./testing/heard.ts";
import { running } from "./testing/running.ts";
import { deferred } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const backoff = new Backoff({ base: 1, cap: 1 });
const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

afterEach(() => expectInvariants(pool));

describe("a settlement is told of", () => {
  test("once, after the statement that the store has confirmed, however many failed before", async () => {
    const Task = defineTask({ kind: "settled_late", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    let tries = 0;
    const flaky = wrapStore(store, ({ settle }) => ({
      settle: async (request) => {
        tries += 1;
        if (tries < 3) throw reset();
        return settle(request);
      },
    }));
    let triesWhenTold = 0;
    let status: Promise<string | undefined> | null = null;
    const heard = await heardWhile(
      () => new Worker(flaky).register(Task, () => undefined).runOnce(),
      ({ channel: name }) => {
        if (name !== "venturi:settle") return;
        triesWhenTold = tries;
        status = queue.job(id).then((job) => job?.status);
      },
    );
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", outcome: "completed" }]);
    expect([tries, triesWhenTold, await status]).toEqual([3, 3, "completed"]);
  });

  test("once, where the statement went through and only its answer was lost", async () => {
    const Task = defineTask({ kind: "settled_unheard", payload });
    await queue.enqueue(Task({ n: 1 }));
    let tries = 0;
    const deaf = wrapStore(store, ({ settle }) => ({
      settle: async (request) => {
        tries += 1;
        const result = await settle(request);
        if (tries === 1) throw reset();
        return result;
      },
    }));
    const heard = await heardWhile(() =>
      new Worker(deaf).register(Task, () => undefined).runOnce(),
    );
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", outcome: "completed" }]);
    expect(tries).toBe(2);
  });

  test("as lost, and never as settled, where the run no longer held its claim", async () => {
    const Task = defineTask({ kind: "lost", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const heard = await heardWhile(() =>
      new Worker(store).register(Task, () => takeAway(pool, store, id)).runOnce(),
    );
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "lost", run: { id } }]);
    await queue.cancel(id);
  });

  test("as released for a handler that goes on after the shutdown timeout", async () => {
    const Task = defineTask({ kind: "straggler", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const started = deferred();
    const done = deferred();
    const worker = new Worker(store, { shutdownTimeout: 50 }).register(Task, () => {
      started.resolve();
      return done.promise;
    });
    const heard = await heardWhile(() => running(worker, () => started.promise));
    done.resolve();
    expect(on(heard, "venturi:run").at(-1)).toMatchObject({ event: "end", result: "released" });
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", outcome: "released" }]);
    expect(heard.at(-1)).toMatchObject({ event: "stopped" });
    await queue.cancel(id);
  });

  test("as completed where the handler completed it in a transaction, as retried where that did not commit", async () => {
    const Task = defineTask({ kind: "completing", payload, backoff });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    const complete = async (
      { n }: { readonly n: number },
      ctx: JobContext<unknown, PostgresTransaction>,
    ): Promise<void> => {
      const client = await pool.connect();
      await client.query("begin");
      await ctx.complete(client);
      await client.query(n === 1 ? "commit" : "rollback");
      client.release();
    };
    const heard = await heardWhile(() => new Worker(store).register(Task, complete).runOnce());
    const outcomeOf = new Map(
      on(heard, "venturi:settle").map((event) => [
        event.run.id,
        event.event === "settled" && event.outcome,
      ]),
    );
    expect(ids.map((id) => outcomeOf.get(id))).toEqual(["completed", "retried"]);
    expect(on(heard, "venturi:run").filter(({ event }) => event === "end")).toMatchObject([
      { result: "completed", error: null },
      { result: "completed", error: null },
    ]);
    for (const id of ids) await queue.cancel(id);
  });
});
