import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { defineTask, isVenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : undefined);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("starting and stopping", () => {
  const Task = defineTask({ kind: "idle", payload });
  const idle = () => new Worker(store).register(Task, () => undefined);

  test("an idle worker stops within 100 ms, again and again, and leaves nothing behind", async () => {
    // A pool keeps a timer for each of its idle connections, of which there may be more or fewer at any time.
    const pool = new pg.Pool({ connectionString: database.url, idleTimeoutMillis: 0 });
    const untimed = new PostgresStore({ pool, listenConnectionString: database.directUrl });
    const idle = () => new Worker(untimed).register(Task, () => undefined);
    await running(idle(), () => wait(30));
    const resources = () =>
      process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const before = resources();
    const signals = process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
    const times: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      let at = 0;
      await running(idle(), async () => {
        await wait(20);
        at = performance.now();
      });
      times.push(performance.now() - at);
    }
    expect(times.sort((a, b) => a - b)[5]).toBeLessThan(100);
    await until(() => resources() <= before);
    expect(process.listenerCount("SIGTERM") + process.listenerCount("SIGINT")).toBe(signals);
    const { rows } = await database.pool.query(
      "select count(*)::int4 as n from venturi_workers where stopping_at is null",
    );
    expect(rows).toEqual([{ n: 0 }]);
    await untimed.close();
    await pool.end();
  });

  test("it installs no signal handlers of the process, and closes its listening connection", async () => {
    const handlers = () =>
      ["SIGTERM", "SIGINT", "SIGHUP", "beforeExit", "uncaughtException", "unhandledRejection"].map(
        (event) => process.listenerCount(event),
      );
    const listening = async () => {
      const { rows } = await database.pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen %'",
      );
      return rows.length;
    };
    const before = handlers();
    await running(idle(), async () => {
      await until(async () => (await listening()) === 1);
      expect(handlers()).toEqual(before);
    });
    await until(async () => (await listening()) === 0, { withinMs: 1_000 });
    expect(handlers()).toEqual(before);
  });

  test("aborted before the run it returns at once, without a statement", async () => {
    let calls = 0;
    const watched = wrapStore(store, () => ({
      startWorker: () => {
        calls += 1;
        return Promise.reject(new Error("must not be called"));
      },
    }));
    const worker = new Worker(watched).register(Task, () => undefined);
    expect(await worker.run({ signal: AbortSignal.abort() })).toEqual({ unreleased: [] });
    expect(calls).toBe(0);
  });

  test("without kinds it returns at once, and says so", async () => {
    const { logger, records } = recordingLogger();
    expect(await new Worker(store, { logger }).run()).toEqual({ unreleased: [] });
    await new Worker(store, { logger }).runOnce();
    expect(records.map(({ level, message }) => [level, message])).toEqual(
      Array(2).fill(["warn", expect.stringContaining("no task is registered")]),
    );
  });

  test("misspelt options are refused before anything is started", async () => {
    const options = { sginal: new AbortController().signal } as object;
    for (const call of [idle().run(options), idle().runOnce(options)])
      await expect(call).rejects.toMatchObject({ code: "invalid-argument", argument: "sginal" });
  });

  test("it runs once", async () => {
    const worker = idle();
    await running(worker, async () => {
      expect(codeOf(await worker.run().catch((error: unknown) => error))).toBe("already-run");
    });
    expect(codeOf(await worker.run().catch((error: unknown) => error))).toBe("already-run");
  });

  test("a kind cannot be registered on a worker that has started", async () => {
    const worker = idle();
    const Other = defineTask({ kind: "other", payload });
    await running(worker, async () => {
      expect(() => worker.register(Other, () => undefined)).toThrow(/has started/);
    });
  });

  test("stop does what an abort does, before, during and after a run, more than once", async () => {
    const before = idle();
    await before.stop();
    expect(await before.run()).toEqual({ unreleased: [] });
    const worker = idle();
    const ended = worker.run();
    await wait(20);
    await Promise.all([worker.stop(), worker.stop()]);
    expect(await ended).toEqual({ unreleased: [] });
    await worker.stop();
  });

  test("disposal stops and waits until all has ended", async () => {
    const Slow = defineTask({ kind: "disposed", payload });
    const id = await queue.enqueue(Slow({ n: 0 }));
    const started = deferred();
    {
      await using worker = new Worker(store).register(Slow, async () => {
        started.resolve();
        await wait(50);
      });
      void worker.run();
      await started.promise;
    }
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test("an abort twice makes no difference", async () => {
    const controller = new AbortController();
    const worker = idle();
    const ended = worker.run({ signal: controller.signal });
    await wait(20);
    controller.abort();
    controller.abort();
    await worker.stop();
    expect(await ended).toEqual({ unreleased: [] });
  });

  test("an abort while its listening connection only begins stops it at once", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const deaf = await PostgresStore.connect({
      connectionString: database.url,
      listenConnectionString: `postgres://nobody@127.0.0.1:${port}/nothing`,
    });
    const controller = new AbortController();
    const ended = new Worker(deaf)
      .register(Task, () => undefined)
      .run({ signal: controller.signal });
    await until(() => sockets.length > 0);
    const abortedAt = performance.now();
    controller.abort();
    expect(await ended).toEqual({ unreleased: [] });
    expect(performance.now() - abortedAt).toBeLessThan(500);
    await deaf.close();
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test("a fresh worker on the same store works after another has stopped", async () => {
    const Fresh = defineTask({ kind: "fresh", payload });
    const first = new Worker(store).register(Fresh, () => undefined);
    await running(first, () => wait(20));
    const id = await queue.enqueue(Fresh({ n: 0 }));
    const second = new Worker(store).register(Fresh, () => undefined);
    await running(second, () => until(async () => (await outcomes(id)).includes("completed")));
  });
});
