import { deepStrictEqual } from "node:assert";
import { defineTask, isVenturiError, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { expect, test } from "vitest";
import { type JobContext, Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

test("a handler knows which run of which job it is", async () => {
  const Task = defineTask({ kind: "who", payload });
  const id = await queue.enqueue(Task({ n: 1 }), { headers: { traceparent: "00-ab" } });
  const seen: Pick<JobContext, "id" | "kind" | "headers" | "runCount" | "failureCount">[] = [];
  const worker = new Worker(store).register(Task, (_, ctx) => {
    const { id, kind, headers, runCount, failureCount } = ctx;
    deepStrictEqual(headers, { traceparent: "00-ab" });
    seen.push({ id, kind, headers, runCount, failureCount });
    if (runCount === 1) throw new Error("no");
    return runCount === 2 ? Outcome.pauseFor(0) : undefined;
  });
  for (let run = 0; run < 3; run += 1) await worker.runOnce();
  const common = { id, kind: "who", headers: { traceparent: "00-ab" } };
  expect(seen).toEqual([
    { ...common, runCount: 1, failureCount: 0 },
    { ...common, runCount: 2, failureCount: 1 },
    { ...common, runCount: 3, failureCount: 1 },
  ]);
});

test("without headers there are none, rather than null", async () => {
  const Task = defineTask({ kind: "headless", payload });
  await queue.enqueue(Task({ n: 1 }));
  const seen: (string | undefined)[] = [];
  const worker = new Worker(store).register(Task, (_, { headers }) => {
    seen.push(headers["traceparent"], ...Object.keys(headers));
  });
  await worker.runOnce();
  expect(seen).toEqual([undefined]);
});

test("the history is in order; with a limit it is the latest entries", async () => {
  const Task = defineTask({ kind: "history", payload });
  await queue.enqueue(Task({ n: 1 }));
  const seen: { all: string[]; last: string[] }[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    const all = (await ctx.history()).map(({ note }) => note ?? "");
    const last = (await ctx.history({ limit: 2 })).map(({ note }) => note ?? "");
    seen.push({ all, last });
    if (ctx.runCount < 4) return Outcome.pauseFor(0, `pause ${ctx.runCount}`);
    return undefined;
  });
  for (let run = 0; run < 4; run += 1) await worker.runOnce();
  expect(seen.at(-1)).toEqual({
    all: ["pause 1", "pause 2", "pause 3"],
    last: ["pause 2", "pause 3"],
  });
});

test("a limit that is no count is refused", async () => {
  const Task = defineTask({ kind: "bad_limit", payload });
  await queue.enqueue(Task({ n: 1 }));
  const errors: unknown[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    for (const limit of [0, -1, 1.5, Number.NaN]) {
      await ctx.history({ limit }).catch((error: unknown) => errors.push(error));
    }
  });
  await worker.runOnce();
  expect(errors).toHaveLength(4);
  for (const error of errors) {
    expect(isVenturiError(error) && error.code === "invalid-argument").toBe(true);
  }
});

test("the deadline is when the lease ends by the database's clock", async () => {
  const Task = defineTask({ kind: "deadline", payload, lease: "10m" });
  const id = await queue.enqueue(Task({ n: 1 }));
  const deadlines: [Date, Date | null | undefined][] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    deadlines.push([ctx.deadline, (await queue.job(id))?.leaseExpiresAt]);
  });
  await worker.runOnce();
  const [[deadline, stored] = []] = deadlines;
  expect(deadline).toEqual(stored);
  const entry = (await queue.journal(id))[0];
  expect((deadline?.getTime() ?? 0) - (entry?.startedAt?.getTime() ?? 0)).toBe(600_000);
});

test("the log adds which run it comes from", async () => {
  const { logger, records } = recordingLogger();
  const Task = defineTask({ kind: "log", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store, { logger }).register(Task, (_, ctx) => {
    ctx.log.info("hello", { extra: 1 });
  });
  await worker.runOnce();
  expect(records).toContainEqual({
    level: "info",
    message: "hello",
    fields: { jobId: id, kind: "log", runCount: 1, extra: 1 },
  });
});

test("a logger that throws does not fail the job", async () => {
  const Task = defineTask({ kind: "log_throws", payload });
  await queue.enqueue(Task({ n: 1 }));
  const fail = () => {
    throw new Error("disk full");
  };
  const logger = { debug: fail, info: fail, warn: fail, error: fail };
  const worker = new Worker(store, { logger }).register(Task, (_, ctx) => {
    ctx.log.warn("hello");
  });
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
});

test("every handler gets the state", async () => {
  const Task = defineTask({ kind: "state", payload });
  await queue.enqueue(Task({ n: 2 }));
  const state = { total: 0 };
  const worker = new Worker(store, { state }).register(Task, ({ n }, _, app) => {
    app.total += n;
  });
  await worker.runOnce();
  expect(state.total).toBe(2);
});

test("a handler may take its context apart", async () => {
  const Task = defineTask({ kind: "apart", payload });
  await queue.enqueue(Task({ n: 1 }));
  const aborted: boolean[] = [];
  const worker = new Worker(store).register(Task, (_, { signal }) => {
    aborted.push(signal.aborted);
  });
  await worker.runOnce();
  expect(aborted).toEqual([false]);
});
