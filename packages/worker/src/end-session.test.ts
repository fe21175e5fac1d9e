import { defineTask, VenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { beforeEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { deferred, until } from "./testing/signals.ts";
import { type WorkerVerbs, wrapStore } from "./testing/wrap-store.ts";

const Task = defineTask({ kind: "t", payload: v.object({}) });

let store: MemoryStore;

beforeEach(() => {
  store = new MemoryStore();
});

describe("a subscription that cannot be closed", () => {
  test.each<[string, () => Promise<void>]>([
    ["that rejects", () => Promise.reject(new Error("UNLISTEN failed"))],
    [
      "that throws",
      () => {
        throw new Error("UNLISTEN failed");
      },
    ],
  ])("%s: running handlers end all the same, and the worker says goodbye", async (_, close) => {
    const id = await new Queue(store).enqueue(Task({}));
    let goodbyes = 0;
    const wrapped = wrapStore(store, (plain) => ({
      listen: (request) => {
        const listening = plain.listen?.(request).listening ?? Promise.resolve();
        return { listening, close };
      },
      stopWorker: (request) => {
        goodbyes += 1;
        return plain.stopWorker(request);
      },
    }));
    const mayEnd = deferred();
    const stop = new AbortController();
    let isRunning = false;
    const { logger, records } = recordingLogger();
    const worker = new Worker(wrapped, { logger }).register(Task, () => {
      isRunning = true;
      return mayEnd.promise;
    });
    const ended = worker.run({ signal: stop.signal });
    await until(() => isRunning);
    stop.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    mayEnd.resolve();
    expect(await ended).toEqual({ unreleased: [] });
    expect(await new Queue(store).job(id)).toMatchObject({ status: "completed" });
    expect(goodbyes).toBe(1);
    expect(records).toContainEqual({
      level: "warn",
      message: "could not stop listening for notifications",
      fields: { error: "UNLISTEN failed" },
    });
  });
});

test("a handler that waits for its lease to be extended is told once its worker has stopped", async () => {
  await new Queue(store).enqueue(Task({}));
  let isAsked = false;
  let told: unknown;
  const deaf = wrapStore(store, () => ({
    extendLease: () => {
      isAsked = true;
      return new Promise<never>(() => undefined);
    },
  }));
  const worker = new Worker(deaf, { shutdownTimeout: 0 }).register(Task, async (_, ctx) => {
    await ctx.extendLease("1m").catch((error: unknown) => {
      told = error;
    });
  });
  const ended = worker.run();
  await until(() => isAsked);
  await worker.stop();
  expect(await ended).toEqual({ unreleased: [] });
  await until(() => told !== undefined);
  expect(told).toMatchObject({ code: "shutdown" });
});

describe("a worker goes silent instead of saying goodbye, so that others recover its jobs", () => {
  test("where it could not settle a run", async () => {
    const id = await new Queue(store).enqueue(Task({}));
    let settles = 0;
    let goodbyes = 0;
    const deaf = wrapStore(store, (plain) => ({
      settle: () => {
        settles += 1;
        return new Promise<never>(() => undefined);
      },
      stopWorker: (request) => {
        goodbyes += 1;
        return plain.stopWorker(request);
      },
    }));
    const worker = new Worker(deaf, { shutdownTimeout: 0 }).register(Task, () => undefined);
    const ended = worker.run();
    await until(() => settles > 0);
    await worker.stop();
    expect(await ended).toEqual({ unreleased: [id] });
    expect(goodbyes).toBe(0);
  });

  test("where a claim's answer was lost, and the store cannot be asked what it holds", async () => {
    const gone = async () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    let claims = 0;
    let goodbyes = 0;
    const deaf = wrapStore(store, (plain) => ({
      claim: () => {
        claims += 1;
        return gone();
      },
      findStale: gone,
      stopWorker: (request) => {
        goodbyes += 1;
        return plain.stopWorker(request);
      },
    }));
    const worker = new Worker(deaf).register(Task, () => undefined);
    const ended = worker.run();
    await until(() => claims > 0);
    await worker.stop();
    expect(await ended).toEqual({ unreleased: [] });
    expect(goodbyes).toBe(0);
  });
});

describe("an idle worker stops at once", () => {
  const unanswered = () => new Promise<never>(() => undefined);

  const stopped = async (of: WorkerVerbs, isReady: () => boolean): Promise<number> => {
    const stop = new AbortController();
    const options = { heartbeat: 100, shutdownTimeout: "1m" } as const;
    const ended = new Worker(of, options)
      .register(Task, () => undefined)
      .run({ signal: stop.signal });
    await until(isReady);
    const at = performance.now();
    stop.abort();
    expect(await ended).toEqual({ unreleased: [] });
    return performance.now() - at;
  };

  test.each(["1m", "0ms", "Infinity"] as const)(
    "also while its start goes unanswered, with a shutdownTimeout of %s",
    async (timeout) => {
      let starts = 0;
      const deaf = wrapStore(store, () => ({
        startWorker: () => {
          starts += 1;
          return unanswered();
        },
      }));
      const shutdownTimeout = timeout === "Infinity" ? Number.POSITIVE_INFINITY : timeout;
      const worker = new Worker(deaf, { shutdownTimeout }).register(Task, () => undefined);
      const ended = worker.run();
      await until(() => starts === 1);
      await worker.stop();
      expect(await ended).toEqual({ unreleased: [] });
    },
  );

  test("a session that was opened too late is ended all the same", async () => {
    const mayStart = deferred();
    let starts = 0;
    let goodbyes = 0;
    const slow = wrapStore(store, (plain) => ({
      startWorker: async (request) => {
        starts += 1;
        await mayStart.promise;
        // The statement was on its way, and nobody could take it back.
        return plain.startWorker({ ...request, signal: new AbortController().signal });
      },
      stopWorker: (request) => {
        goodbyes += 1;
        return plain.stopWorker(request);
      },
    }));
    const worker = new Worker(slow).register(Task, () => undefined);
    const ended = worker.run();
    await until(() => starts === 1);
    await worker.stop();
    await ended;
    mayStart.resolve();
    await until(() => goodbyes === 1);
  });

  test.each(["answers it", "does not answer it either"])(
    "also while a beat goes unanswered, and says goodbye to a store that %s",
    async (name) => {
      let beats = 0;
      let goodbyes = 0;
      const deaf = wrapStore(store, (plain) => ({
        beat: (request) => {
          beats += 1;
          return beats === 1 ? plain.beat(request) : unanswered();
        },
        stopWorker: (request) => {
          goodbyes += 1;
          return name === "answers it" ? plain.stopWorker(request) : unanswered();
        },
      }));
      expect(await stopped(deaf, () => beats === 2)).toBeLessThan(20_000);
      expect(goodbyes).toBe(1);
    },
  );
});
