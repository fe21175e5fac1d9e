import { getEventListeners } from "node:events";
import { defineTask, isVenturiError, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
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
const carry = v.optional(v.object({ page: v.number() }), { page: 0 });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const lastNote = async (id: string) => (await queue.journal(id)).at(-1)?.note;
const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : undefined);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Resolves when a signal aborts. */
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

describe("handlers that end within the shutdown timeout", () => {
  test("settle as always, after the abort: completed, retried, paused with their carry", async () => {
    const Task = defineTask({ kind: "drain", payload, carry });
    const ids = await queue.enqueueMany([Task({ n: 0 }), Task({ n: 1 }), Task({ n: 2 })]);
    const { logger, records } = recordingLogger();
    let started = 0;
    const worker = new Worker(store, { concurrency: 3, logger }).register(
      Task,
      async ({ n }, ctx) => {
        started += 1;
        await aborted(ctx.signal);
        await wait(50);
        ctx.carry.page = 7;
        if (n === 1) throw new Error("no");
        return n === 2 ? Outcome.pauseFor("1h") : undefined;
      },
    );
    const [report] = await running(worker, () => until(() => started === 3));
    expect(report).toEqual({ unreleased: [] });
    expect(await Promise.all(ids.map(outcomes))).toEqual([["completed"], ["retried"], ["paused"]]);
    expect(await queue.job(ids[2] as string)).toMatchObject({
      status: "pending",
      carry: { page: 7 },
    });
    expect(records.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("are told why by their signal", async () => {
    const Task = defineTask({ kind: "reason", payload });
    await queue.enqueue(Task({ n: 0 }));
    const started = deferred();
    const reasons: unknown[] = [];
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      started.resolve();
      await aborted(ctx.signal);
      reasons.push(ctx.signal.reason);
    });
    await running(worker, () => started.promise);
    expect(codeOf(reasons[0])).toBe("shutdown");
    expect(reasons[0]).toMatchObject({ name: "AbortError" });
  });

  test("that give up because they were told to are released, not failed", async () => {
    const Task = defineTask({ kind: "give_up", payload, carry });
    const ids = await queue.enqueueMany(Array.from({ length: 4 }, (_, n) => Task({ n })));
    let started = 0;
    const worker = new Worker(store, { concurrency: 4 }).register(Task, async ({ n }, ctx) => {
      started += 1;
      ctx.carry.page = 9;
      await aborted(ctx.signal);
      if (n === 0) ctx.signal.throwIfAborted();
      if (n === 1) throw new DOMException("cut off", "AbortError");
      if (n === 2)
        throw new Error("fetch failed", { cause: new Error("x", { cause: ctx.signal.reason }) });
      throw new Error("something else");
    });
    await running(worker, () => until(() => started === 4));
    expect(await Promise.all(ids.map(outcomes))).toEqual([
      ["released"],
      ["released"],
      ["released"],
      ["retried"],
    ]);
    for (const id of ids.slice(0, 3)) {
      expect(await queue.job(id)).toMatchObject({
        status: "pending",
        failureCount: 0,
        carry: null,
      });
    }
  });
});

test("an AbortError before the worker has been told to stop is a failure like any other", async () => {
  const Task = defineTask({ kind: "own_abort", payload });
  const id = await queue.enqueue(Task({ n: 0 }));
  const worker = new Worker(store).register(Task, () => {
    throw new DOMException("the request was cut off", "AbortError");
  });
  await worker.runOnce();
  expect(await outcomes(id)).toEqual(["retried"]);
  expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1 });
});

describe("handlers that do not end in time", () => {
  test("are released: due now, the carry as before, no failure; what they come to later is dropped", async () => {
    const Task = defineTask({ kind: "straggler", payload, carry });
    const id = await queue.enqueue(Task({ n: 0 }));
    await new Worker(store)
      .register(Task, (_, ctx) => {
        ctx.carry.page = 3;
        return Outcome.pauseFor(0);
      })
      .runOnce();
    const [started, finish, ended] = [deferred(), deferred(), deferred()];
    let settles = 0;
    const counting = wrapStore(store, (plain) => ({
      settle: (request) => {
        settles += 1;
        return plain.settle(request);
      },
    }));
    const worker = new Worker(counting, { shutdownTimeout: 100 }).register(Task, async (_, ctx) => {
      expect(ctx.carry).toEqual({ page: 3 });
      ctx.carry.page = 5;
      ctx.attach("so far");
      started.resolve();
      await finish.promise;
      ended.resolve();
    });
    const before = performance.now();
    const [report] = await running(worker, () => started.promise);
    expect(performance.now() - before).toBeLessThan(1_500);
    expect(report).toEqual({ unreleased: [] });
    expect(await queue.job(id)).toMatchObject({
      status: "pending",
      failureCount: 0,
      runCount: 2,
      carry: { page: 3 },
    });
    const { rows } = await database.pool.query(
      "select visible_at <= clock_timestamp() as due from venturi_queue where venturi_ulid(job_id) = $1",
      [id],
    );
    expect(rows).toEqual([{ due: true }]);
    const entry = (await queue.journal(id)).at(-1);
    expect(entry).toMatchObject({ outcome: "released", attachment: "so far" });
    finish.resolve();
    await ended.promise;
    await wait(50);
    expect(settles).toBe(1);
    expect(await outcomes(id)).toEqual(["paused", "released"]);
  });

  test("a release that fails at first is tried again", async () => {
    const Task = defineTask({ kind: "release_again", payload });
    const id = await queue.enqueue(Task({ n: 0 }));
    const started = deferred();
    let fails = 2;
    const flaky = wrapStore(store, (plain) => ({
      settle: (request) => {
        fails -= 1;
        const lost = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
        return fails >= 0 ? Promise.reject(lost) : plain.settle(request);
      },
    }));
    const worker = new Worker(flaky, { shutdownTimeout: 50 }).register(Task, () => {
      started.resolve();
      return deferred().promise;
    });
    const [report] = await running(worker, () => started.promise);
    expect(report).toEqual({ unreleased: [] });
    expect(await outcomes(id)).toEqual(["released"]);
  });
});

describe("claims around the abort", () => {
  test("none is made after it, also for a job that pauses for no time again and again", async () => {
    const Task = defineTask({ kind: "restless", payload });
    await queue.enqueue(Task({ n: 0 }));
    let isAborted = false;
    let claimsAfter = 0;
    let runs = 0;
    const watched = wrapStore(store, (plain) => ({
      claim: (request) => {
        if (isAborted) claimsAfter += 1;
        return plain.claim(request);
      },
    }));
    const worker = new Worker(watched).register(Task, () => {
      runs += 1;
      return Outcome.pauseFor(0);
    });
    let at = 0;
    await running(worker, async (controller) => {
      await until(() => runs > 20);
      isAborted = true;
      at = performance.now();
      controller.abort();
    });
    expect(performance.now() - at).toBeLessThan(500);
    expect(claimsAfter).toBe(0);
  });

  test("what a claim brings after the abort is handed back without a trace", async () => {
    const Task = defineTask({ kind: "too_late", payload });
    const ids = await queue.enqueueMany(Array.from({ length: 8 }, (_, n) => Task({ n })));
    const controller = new AbortController();
    const late = wrapStore(store, (plain) => ({
      claim: async (request) => {
        const result = await plain.claim(request);
        controller.abort();
        return result;
      },
    }));
    const ran: number[] = [];
    const worker = new Worker(late, { concurrency: 8 }).register(Task, ({ n }) => {
      ran.push(n);
    });
    expect(await worker.run({ signal: controller.signal })).toEqual({ unreleased: [] });
    expect(ran).toEqual([]);
    for (const id of ids) {
      expect(await queue.job(id)).toMatchObject({ status: "pending", runCount: 0 });
      expect(await queue.journal(id)).toEqual([]);
    }
  });

  test("whenever the abort comes, every job is pending or settled afterwards, and none claimed", async () => {
    const Task = defineTask({ kind: "whenever", payload });
    for (let round = 0; round < 200; round += 1) {
      const ids = await queue.enqueueMany(Array.from({ length: 6 }, (_, n) => Task({ n })));
      const worker = new Worker(store, { concurrency: 4 }).register(Task, () => wait(1));
      const [report] = await running(worker, () => wait(Math.random() * 15));
      expect(report).toEqual({ unreleased: [] });
      const { jobs } = await queue.jobs({ ids, status: "claimed" });
      expect(jobs).toEqual([]);
    }
  });

  test("a handler whose payload is still being validated is not started", async () => {
    const validating = deferred();
    const go = deferred();
    const Task = defineTask({
      kind: "slow_schema",
      payload: v.pipeAsync(
        v.objectAsync({ n: v.number() }),
        v.checkAsync(async ({ n }) => {
          if (n === 1) return true;
          validating.resolve();
          await go.promise;
          return true;
        }),
      ),
    });
    const id = await queue.enqueue(Task({ n: 1 }));
    await database.pool.query(
      `update venturi_jobs set payload = '{"n": 2}' where venturi_ulid(id) = $1`,
      [id],
    );
    let ran = false;
    const worker = new Worker(store).register(Task, () => {
      ran = true;
    });
    await running(worker, async (controller) => {
      await validating.promise;
      controller.abort();
      go.resolve();
    });
    expect(ran).toBe(false);
    expect(await queue.job(id)).toMatchObject({ status: "pending", runCount: 0 });
  });
});

test("2,000 jobs leave one listener on the signal that stops the worker, and none afterwards", async () => {
  const Task = defineTask({ kind: "many", payload });
  await queue.enqueueMany(Array.from({ length: 2_000 }, (_, n) => Task({ n })));
  const most = { listeners: 0 };
  let done = 0;
  const signals = new AbortController();
  const worker = new Worker(store, { concurrency: 100 }).register(Task, (_, ctx) => {
    void ctx.signal;
    done += 1;
    most.listeners = Math.max(most.listeners, getEventListeners(signals.signal, "abort").length);
    if (done === 2_000) signals.abort();
  });
  await worker.run({ signal: signals.signal });
  expect(most.listeners).toBe(1);
  expect(getEventListeners(signals.signal, "abort")).toEqual([]);
});

test("a worker that is draining claims nothing from the one that takes over; every job ends once", async () => {
  const Task = defineTask({ kind: "deploy", payload });
  const ids = await queue.enqueueMany(Array.from({ length: 50 }, (_, n) => Task({ n })));
  const runs: string[] = [];
  const worker = (name: string) =>
    new Worker(store, { name, concurrency: 4 }).register(Task, async (_, ctx) => {
      runs.push(ctx.id);
      await wait(10);
    });
  const old = new AbortController();
  const oldEnded = worker("old").run({ signal: old.signal });
  await until(() => runs.length > 10);
  old.abort();
  await running(worker("new"), async () => {
    await oldEnded;
    await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 50);
  });
  expect(runs.sort()).toEqual([...ids].sort());
});

test("what a release says is in the journal", async () => {
  const Task = defineTask({ kind: "note", payload });
  const id = await queue.enqueue(Task({ n: 0 }));
  const started = deferred();
  const worker = new Worker(store, { shutdownTimeout: 0 }).register(Task, () => {
    started.resolve();
    return deferred().promise;
  });
  await running(worker, () => started.promise);
  expect(await lastNote(id)).toMatch(/still running when the worker had to stop/);
});
