import { defineTask, Outcome } from "@venturi/core";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { catchCode, codeOf } from "./testing/codes.ts";
import { completingFixture } from "./testing/completing-fixture.ts";
import { takeAway } from "./testing/gone.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const { pool, store, queue, inTransaction, entries, rowsOf, write } = await completingFixture();
const payload = v.object({ n: v.number() });
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("while the transaction is open", () => {
  test("every other verb passes over the job, and waits for nothing", async () => {
    const Task = defineTask({ kind: "passed_over", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const other = new Worker(store).register(Task, () => undefined);
    const seen: unknown[] = [];
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (client) => {
        await ctx.complete(client);
        const from = performance.now();
        seen.push(await queue.cancel(id), await queue.retry(id), await other.runOnce());
        expect(performance.now() - from).toBeLessThan(2_000);
        expect(await queue.job(id)).toMatchObject({ status: "claimed" });
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(seen).toEqual([false, false, { completed: 0, paused: 0, retried: 0, dead: 0 }]);
    expect(await entries(id)).toEqual([["completed", null]]);
  });

  test("recovery leaves the run alone, although its lease has ended", async () => {
    const Task = defineTask({ kind: "slow_commit", payload, lease: "1s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = () =>
      new Worker(store, { workerTimeout: 600 }).register(Task, (_, ctx) =>
        inTransaction(async (client) => {
          await write(client, ctx);
          await ctx.complete(client);
          await wait(2_000);
        }),
      );
    await running([worker(), worker()], () => until(async () => (await rowsOf(id)) === 1));
    expect(await entries(id)).toEqual([["completed", null]]);
  });

  test("a stop does not wait for it longer than for any handler, and the commit counts all the same", async () => {
    const Task = defineTask({ kind: "stopped_open", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const [opened, go, ended] = [deferred(), deferred(), deferred()];
    const worker = new Worker(store, { shutdownTimeout: 100 }).register(Task, async (_, ctx) => {
      await inTransaction(async (client) => {
        await write(client, ctx);
        await ctx.complete(client);
        opened.resolve();
        await go.promise;
      });
      ended.resolve();
    });
    let at = 0;
    const [report] = await running(worker, async () => {
      await opened.promise;
      at = performance.now();
    });
    expect(performance.now() - at).toBeLessThan(5_100);
    expect(report).toEqual({ unreleased: [id] });
    go.resolve();
    await ended.promise;
    expect(await rowsOf(id)).toBe(1);
    expect(await entries(id)).toEqual([["completed", null]]);
  });
});

describe("after the commit", () => {
  test("a handler that throws has completed all the same, with a warning", async () => {
    const { logger, records } = recordingLogger();
    const Task = defineTask({ kind: "throws_later", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store, { logger }).register(Task, async (_, ctx) => {
      await inTransaction((client) => ctx.complete(client));
      throw new Error("too late");
    });
    expect(await worker.runOnce()).toEqual({ completed: 1, paused: 0, retried: 0, dead: 0 });
    expect(await entries(id)).toEqual([["completed", null]]);
    const warnings = records.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.fields).toMatchObject({ jobId: id, result: "threw: too late" });
  });

  test("so has one that returns a pause, with a warning", async () => {
    const { logger, records } = recordingLogger();
    const Task = defineTask({ kind: "pauses_later", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store, { logger }).register(Task, async (_, ctx) => {
      await inTransaction((client) => ctx.complete(client));
      return Outcome.pauseFor("1h");
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1, paused: 0 });
    expect(await entries(id)).toEqual([["completed", null]]);
    expect(records.filter(({ level }) => level === "warn")).toHaveLength(1);
  });

  test("attach is ignored, with one warning", async () => {
    const { logger, records } = recordingLogger();
    const Task = defineTask({ kind: "attaches_later", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store, { logger }).register(Task, async (_, ctx) => {
      ctx.attach("first");
      await inTransaction((client) => ctx.complete(client));
      ctx.attach("second");
      ctx.attach("third");
    });
    await worker.runOnce();
    expect((await queue.journal(id))[0]?.attachment).toBe("first");
    expect(records.filter(({ message }) => message.includes("attach"))).toHaveLength(1);
  });

  test("extending the lease rejects with claim-lost, and aborts nothing", async () => {
    const Task = defineTask({ kind: "extends_later", payload });
    await queue.enqueue(Task({ n: 1 }));
    const seen: unknown[] = [];
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      await inTransaction((client) => ctx.complete(client));
      seen.push(await catchCode(ctx.extendLease("1h")), ctx.signal.aborted);
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(seen).toEqual(["claim-lost", false]);
  });

  test("the run is not failed by a settlement that finds its own entry, however often the answer is lost", async () => {
    const Task = defineTask({ kind: "finds_own", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    let losses = 0;
    const lossy = wrapStore(store, (plain) => ({
      settle: async (request) => {
        const result = await plain.settle(request);
        losses += 1;
        if (losses < 3) throw Object.assign(new Error("gone"), { code: "ECONNRESET" });
        return result;
      },
    }));
    const worker = new Worker(lossy).register(Task, (_, ctx) =>
      inTransaction((client) => ctx.complete(client)),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await entries(id)).toEqual([["completed", null]]);
  });
});

describe("a lost claim", () => {
  test("is raised in SQL, so that the transaction cannot commit, even where the error is swallowed", async () => {
    const Task = defineTask({ kind: "lost", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { logger, records } = recordingLogger();
    const seen: unknown[] = [];
    const worker = new Worker(store, { logger }).register(Task, async (_, ctx) => {
      await takeAway(pool, store, id);
      const client = await pool.connect();
      await client.query("begin");
      await write(client, ctx);
      seen.push(await catchCode(ctx.complete(client)), codeOf(ctx.signal.reason));
      const { command } = await client.query("commit");
      seen.push(command);
      client.release();
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 0 });
    expect(seen).toEqual(["claim-lost", "claim-lost", "ROLLBACK"]);
    expect(await rowsOf(id)).toBe(0);
    expect((await entries(id)).map(([outcome]) => outcome)).toEqual(["stale-recovered"]);
    expect(records.filter(({ message }) => message.includes("no longer held"))).toHaveLength(1);
  });

  test("is that of a run whose worker has stopped without it", async () => {
    const Task = defineTask({ kind: "straggler", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const [started, go, ended] = [deferred(), deferred(), deferred<unknown>()];
    const worker = new Worker(store, { shutdownTimeout: 50 }).register(Task, async (_, ctx) => {
      started.resolve();
      await go.promise;
      const completing = inTransaction(async (client) => {
        await write(client, ctx);
        await ctx.complete(client);
      });
      ended.resolve(await catchCode(completing));
    });
    await running(worker, () => started.promise);
    go.resolve();
    expect(await ended.promise).toBe("claim-lost");
    expect(await rowsOf(id)).toBe(0);
    expect((await entries(id)).map(([outcome]) => outcome)).toEqual(["released"]);
  });
});
