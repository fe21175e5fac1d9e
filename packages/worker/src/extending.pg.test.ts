import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { catchCode, codeOf } from "./testing/codes.ts";
import { takeAway } from "./testing/gone.ts";
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
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("timeRemaining", () => {
  test("is what is left of the lease, counted so that it is rather too short", async () => {
    const Task = defineTask({ kind: "remaining", payload, lease: "10s" });
    await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const left = ctx.timeRemaining();
      const { rows } = await database.pool.query("select clock_timestamp()::text as now");
      expect(left).toBeLessThanOrEqual(10_000);
      expect(left).toBeGreaterThan(8_000);
      await wait(50);
      expect(ctx.timeRemaining()).toBeLessThanOrEqual(left - 49);
      // Asked before the database was, it may be larger by the time that took.
      expect(Date.parse(rows[0].now) + ctx.timeRemaining()).toBeLessThan(ctx.deadline.getTime());
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("is 0 once the lease has ended", async () => {
    const Task = defineTask({ kind: "remaining_none", payload, lease: "1s" });
    await queue.enqueue(Task({ n: 1 }));
    const left: number[] = [];
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      if (ctx.runCount > 1) return;
      await wait(1_100);
      left.push(ctx.timeRemaining());
    });
    await worker.runOnce();
    expect(left).toEqual([0]);
  });

  test("is 0 once the claim is lost, however long its lease was, also where the signal had aborted before", async () => {
    const Task = defineTask({ kind: "remaining_lost", payload, lease: "1h" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const left: unknown[] = [];
    const stop = new AbortController();
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      await takeAway(database.pool, store, id);
      stop.abort();
      await until(() => ctx.signal.aborted);
      left.push(codeOf(ctx.signal.reason), ctx.timeRemaining() > 3_500_000);
      left.push(await catchCode(ctx.extendLease("1h")), ctx.timeRemaining());
    });
    await worker.run({ signal: stop.signal });
    expect(left).toEqual(["shutdown", true, "claim-lost", 0]);
  });

  test("is 0 once the worker has released the run", async () => {
    const Task = defineTask({ kind: "remaining_released", payload });
    await queue.enqueue(Task({ n: 1 }));
    const started = deferred<() => number>();
    const worker = new Worker(store, { shutdownTimeout: 50 }).register(Task, (_, ctx) => {
      started.resolve(() => ctx.timeRemaining());
      return new Promise<void>(() => undefined);
    });
    const run = worker.run();
    const timeRemaining = await started.promise;
    expect(timeRemaining()).toBeGreaterThan(0);
    await worker.stop();
    await run;
    expect(timeRemaining()).toBe(0);
  });
});

describe("extendLease", () => {
  test("moves the end of the lease to now plus the duration by the database's clock, and returns it", async () => {
    const Task = defineTask({ kind: "extends", payload, lease: "2s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const before = await database.pool.query("select clock_timestamp()::text as now");
      const deadline = await ctx.extendLease("10m");
      const after = await database.pool.query("select clock_timestamp()::text as now");
      expect(deadline.getTime()).toBeGreaterThanOrEqual(Date.parse(before.rows[0].now) + 599_999);
      expect(deadline.getTime()).toBeLessThanOrEqual(Date.parse(after.rows[0].now) + 600_001);
      expect(ctx.deadline).toEqual(deadline);
      expect((await queue.job(id))?.leaseExpiresAt).toEqual(deadline);
      expect(ctx.timeRemaining()).toBeGreaterThan(590_000);
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("never shortens it", async () => {
    const Task = defineTask({ kind: "not_shorter", payload, lease: "1h" });
    await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const { deadline } = ctx;
      expect(await ctx.extendLease("5s")).toEqual(deadline);
      expect(ctx.timeRemaining()).toBeGreaterThan(3_500_000);
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("is clamped to 1 s … 365 d, and refuses what is no duration", async () => {
    const Task = defineTask({ kind: "clamped", payload, lease: "1s" });
    await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const before = ctx.deadline.getTime();
      expect((await ctx.extendLease(0)).getTime()).toBeGreaterThanOrEqual(before);
      for (const value of [Number.NaN, -1, "soon" as never]) {
        expect(await catchCode(ctx.extendLease(value))).toBe("invalid-argument");
      }
      const year = (await ctx.extendLease(Number.POSITIVE_INFINITY)).getTime() - Date.now();
      expect(Math.abs(year - 365 * 86_400_000)).toBeLessThan(60_000);
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("lets a run outlive its first lease: no signal, no recovery, one entry", async () => {
    const Task = defineTask({ kind: "outlives", payload, lease: "3s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const aborted: boolean[] = [];
    const worker = () =>
      new Worker(store, { workerTimeout: "3s" }).register(Task, async (_, ctx) => {
        for (let step = 0; step < 3; step += 1) {
          await ctx.extendLease("3s");
          await wait(1_500);
        }
        aborted.push(ctx.signal.aborted);
      });
    await running([worker(), worker()], () => until(async () => (await outcomes(id)).length > 0));
    expect(aborted).toEqual([false]);
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test("an extended lease ends as well", async () => {
    const Task = defineTask({ kind: "ends_later", payload, lease: "1s" });
    await queue.enqueue(Task({ n: 1 }));
    const ended: { code: unknown; afterMs: number; isLate: boolean }[] = [];
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const from = performance.now();
      const deadline = await ctx.extendLease("2s");
      let isLate = false;
      // Timers fire in their order, however late a busy machine is with all of them.
      const late = setTimeout(() => {
        isLate = true;
      }, deadline.getTime() - Date.now());
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      clearTimeout(late);
      ended.push({ code: codeOf(ctx.signal.reason), afterMs: performance.now() - from, isLate });
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(ended[0]?.code).toBe("lease-ended");
    expect(ended[0]?.afterMs).toBeGreaterThan(1_500);
    expect(ended[0]?.isLate).toBe(false);
  });

  test("of a lost claim aborts the signal and rejects, both with claim-lost; the result is refused with one warning", async () => {
    const Task = defineTask({ kind: "lost", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { logger, records } = recordingLogger();
    const seen: unknown[] = [];
    const worker = new Worker(store, { logger }).register(Task, async (_, ctx) => {
      await takeAway(database.pool, store, id);
      seen.push(await catchCode(ctx.extendLease("1h")), ctx.signal.aborted);
      seen.push(codeOf(ctx.signal.reason), (ctx.signal.reason as Error).name);
      ctx.signal.throwIfAborted();
    });
    expect(await worker.runOnce()).toEqual({ completed: 0, paused: 0, retried: 0, dead: 0 });
    expect(seen).toEqual(["claim-lost", true, "claim-lost", "AbortError"]);
    expect(await outcomes(id)).toEqual(["stale-recovered"]);
    expect(records.filter(({ message }) => message.includes("no longer held"))).toHaveLength(1);
  });

  test("of a row that another transaction has locked waits for it", async () => {
    const Task = defineTask({ kind: "locked", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const client = await database.pool.connect();
      await client.query("begin");
      await client.query("select 1 from venturi_queue where venturi_ulid(job_id) = $1 for update", [
        id,
      ]);
      let isExtended = false;
      const extending = ctx.extendLease("1h").then(() => {
        isExtended = true;
      });
      await wait(200);
      expect(isExtended).toBe(false);
      await client.query("rollback");
      client.release();
      await extending;
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("after the run has ended rejects with claim-lost", async () => {
    const Task = defineTask({ kind: "too_late", payload });
    await queue.enqueue(Task({ n: 1 }));
    const kept = deferred<() => Promise<Date>>();
    const worker = new Worker(store).register(Task, (_, ctx) => {
      kept.resolve(() => ctx.extendLease("1h"));
    });
    await worker.runOnce();
    expect(await catchCode((await kept.promise)())).toBe("claim-lost");
  });
});

describe("a worker that others took for dead while its handlers ran", () => {
  test("tells them by their signals, as soon as it can beat again", async () => {
    const Task = defineTask({ kind: "presumed", payload });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    let fails = false;
    const flaky = wrapStore(store, (plain) => ({
      beat: (request) =>
        fails
          ? Promise.reject(Object.assign(new Error("gone"), { code: "ECONNRESET" }))
          : plain.beat(request),
    }));
    let started = 0;
    const codes: unknown[] = [];
    const worker = new Worker(flaky, { workerTimeout: 600, concurrency: 2 }).register(
      Task,
      async ({ n }, ctx) => {
        started += 1;
        if (n === 2) return wait(2_000);
        await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        codes.push(codeOf(ctx.signal.reason));
        return undefined;
      },
    );
    await running(worker, async () => {
      await until(() => started === 2);
      fails = true;
      await takeAway(database.pool, store, ids[0] as string);
      await wait(1_000);
      expect(codes).toEqual([]);
      fails = false;
      await until(() => codes.length === 1, { withinMs: 1_500 });
      await until(async () => (await outcomes(ids[1] as string)).length === 1);
    });
    expect(codes).toEqual(["claim-lost"]);
    expect(await Promise.all(ids.map(outcomes))).toEqual([["stale-recovered"], ["completed"]]);
  });
});
