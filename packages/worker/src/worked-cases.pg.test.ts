import { Backoff, defineTask, Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const number = v.object({ n: v.number() });
const quick = new Backoff({ base: 1, cap: 1 });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const statusOf = async (id: string) => (await queue.job(id))?.status;
const isOver = async (id: string) => ["completed", "dead"].includes((await statusOf(id)) ?? "");

test("a job fails twice, then completes: both failures are in its history, attachments on all three runs", async () => {
  const Task = defineTask({ kind: "twice", payload: number, backoff: quick });
  const id = await queue.enqueue(Task({ n: 1 }));
  const seen: number[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    ctx.attach({ run: ctx.runCount });
    seen.push((await ctx.history()).filter(({ outcome }) => outcome === "retried").length);
    if (ctx.runCount < 3) throw new Error("not yet");
  });
  await running(worker, () => until(() => isOver(id)));
  const journal = await queue.journal(id);
  expect(await queue.job(id)).toMatchObject({ status: "completed", failureCount: 2, runCount: 3 });
  expect(journal.map(({ outcome }) => outcome)).toEqual(["retried", "retried", "completed"]);
  expect(journal.map(({ runNo }) => runNo)).toEqual([1, 2, 3]);
  expect(journal.map(({ attachment }) => attachment)).toEqual([{ run: 1 }, { run: 2 }, { run: 3 }]);
  expect(seen).toEqual([0, 1, 2]);
});

test("a job that always fails is dead at its backstop", async () => {
  const Task = defineTask({ kind: "hopeless", payload: number, backstop: 2 });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store).register(Task, () => {
    throw new Error("never");
  });
  await running(worker, () => until(() => isOver(id)));
  expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 2, runCount: 2 });
  expect(await outcomes(id)).toEqual(["retried", "dead"]);
});

test("a permanent failure is dead at once", async () => {
  const Task = defineTask({ kind: "permanent", payload: number });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store).register(Task, () => {
    throw TaskError.permanent("the account was deleted");
  });
  await running(worker, () => until(() => isOver(id)));
  expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 1 });
  expect((await queue.journal(id))[0]).toMatchObject({
    outcome: "dead",
    note: "the account was deleted",
  });
});

const carry = v.optional(v.number(), 0);

test("a pause of no time, then completion: two runs, no failure, the carry kept", async () => {
  const Task = defineTask({ kind: "pause_once", payload: number, carry });
  const id = await queue.enqueue(Task({ n: 1 }));
  const carries: number[] = [];
  const worker = new Worker(store).register(Task, (_, ctx) => {
    carries.push(ctx.carry);
    ctx.carry += 1;
    return ctx.runCount === 1 ? Outcome.pauseFor(0) : Outcome.completed();
  });
  await running(worker, () => until(() => isOver(id)));
  expect(await queue.job(id)).toMatchObject({ status: "completed", runCount: 2, failureCount: 0 });
  expect(carries).toEqual([0, 1]);
  expect(await outcomes(id)).toEqual(["paused", "completed"]);
});

test("fifty pauses under a backstop of three are no failures", async () => {
  const Task = defineTask({ kind: "pause_often", payload: number, carry, backstop: 3 });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store).register(Task, (_, ctx) => {
    ctx.carry += 1;
    return ctx.carry <= 50 ? Outcome.pauseFor(0) : Outcome.completed();
  });
  await running(worker, () => until(() => isOver(id)));
  expect(await queue.job(id)).toMatchObject({ status: "completed", runCount: 51, failureCount: 0 });
  const journal = await outcomes(id);
  expect(journal.filter((outcome) => outcome === "paused")).toHaveLength(50);
  expect(journal).toHaveLength(51);
});

test("40 jobs on two workers of four run once each", async () => {
  const Task = defineTask({ kind: "forty", payload: number });
  const ids = await queue.enqueueMany(Array.from({ length: 40 }, (_, n) => Task({ n })));
  const runs: number[] = [];
  const worker = () =>
    new Worker(store, { concurrency: 4 }).register(Task, ({ n }) => {
      runs.push(n);
    });
  await running([worker(), worker()], () =>
    until(async () => (await Promise.all(ids.map(isOver))).every(Boolean)),
  );
  expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, n) => n));
});

test("120 jobs, of which each fails up to twice, all complete on four workers of six", async () => {
  const Task = defineTask({ kind: "hundred_twenty", payload: number, backoff: quick });
  const ids = await queue.enqueueMany(Array.from({ length: 120 }, (_, n) => Task({ n })));
  const runs = new Map<number, number>();
  const worker = () =>
    new Worker(store, { concurrency: 6 }).register(Task, ({ n }, ctx) => {
      runs.set(n, (runs.get(n) ?? 0) + 1);
      if (ctx.failureCount < n % 3) throw new Error("not yet");
    });
  await running([worker(), worker(), worker(), worker()], () =>
    until(
      async () =>
        (await queue.jobs({ kind: Task.kind, status: "completed", limit: 1_000 })).jobs.length ===
        120,
    ),
  );
  for (const [n, count] of runs) expect([n, count]).toEqual([n, (n % 3) + 1]);
  expect(ids).toHaveLength(120);
});

test("strict priority on one slot: high, normal, low", async () => {
  const Task = defineTask({
    kind: "strict",
    payload: v.object({ priority: v.picklist(["high", "normal", "low"]) }),
    priority: (p) => p.priority,
  });
  await queue.enqueueMany(
    (["low", "normal", "high"] as const).map((priority) => Task({ priority })),
  );
  const order: string[] = [];
  const worker = new Worker(store, { concurrency: 1, priorityRatio: null }).register(
    Task,
    ({ priority }) => {
      order.push(priority);
    },
  );
  await worker.runOnce();
  expect(order).toEqual(["high", "normal", "low"]);
});

test("with a ratio of two, one low job does not wait for all the high ones", async () => {
  const Task = defineTask({
    kind: "ratio",
    payload: v.object({ priority: v.picklist(["high", "low"]) }),
    priority: (p) => p.priority,
  });
  await queue.enqueue(Task({ priority: "low" }));
  await queue.enqueueMany(Array.from({ length: 4 }, () => Task({ priority: "high" })));
  const order: string[] = [];
  const worker = new Worker(store, { concurrency: 1, priorityRatio: 2 }).register(
    Task,
    ({ priority }) => {
      order.push(priority);
    },
  );
  await worker.runOnce();
  expect(order).toHaveLength(5);
  expect(order.at(-1)).toBe("high");
});

test("an idle worker starts a new job within two seconds, however long it may sleep", async () => {
  const Task = defineTask({ kind: "wake", payload: number });
  const started = deferred();
  const worker = new Worker(store, { pollMax: "60s" }).register(Task, () => started.resolve());
  await running(worker, async () => {
    await until(async () => (await idleListeners()) > 0);
    const at = performance.now();
    await queue.enqueue(Task({ n: 1 }));
    await started.promise;
    expect(performance.now() - at).toBeLessThan(2_000);
  });
});

test("a job for later starts then, not before", async () => {
  const Task = defineTask({ kind: "later", payload: number });
  const started = deferred();
  const worker = new Worker(store, { pollMax: "60s" }).register(Task, () => started.resolve());
  await running(worker, async () => {
    await until(async () => (await idleListeners()) > 0);
    const at = performance.now();
    await queue.enqueueAt(Task({ n: 1 }), new Date(Date.now() + 800));
    await started.promise;
    const took = performance.now() - at;
    expect(took).toBeGreaterThan(700);
    expect(took).toBeLessThan(2_800);
  });
});

test("a handler that outlives the shutdown timeout is released", async () => {
  const Task = defineTask({ kind: "sleeper", payload: number });
  const id = await queue.enqueue(Task({ n: 1 }));
  const started = deferred();
  const worker = new Worker(store, { shutdownTimeout: 200 }).register(Task, () => {
    started.resolve();
    return deferred().promise;
  });
  let stoppedAt = 0;
  await running(worker, async () => {
    await started.promise;
    stoppedAt = performance.now();
  });
  expect(performance.now() - stoppedAt).toBeLessThan(5_000);
  expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 0 });
  expect(await outcomes(id)).toEqual(["released"]);
});

test.each([
  ["a cap of two among eight slots", { concurrency: 8, options: { cap: 2 }, jobs: 8 }],
  ["two slots", { concurrency: 2, options: {}, jobs: 6 }],
])(
  "%s: never more than two handlers at once, and two at times",
  async (name, { concurrency, options, jobs }) => {
    const Task = defineTask({ kind: name, payload: number });
    await queue.enqueueMany(Array.from({ length: jobs }, (_, n) => Task({ n })));
    let now = 0;
    let most = 0;
    const worker = new Worker(store, { concurrency }).register(
      Task,
      async () => {
        now += 1;
        most = Math.max(most, now);
        await new Promise((resolve) => setTimeout(resolve, 20));
        now -= 1;
      },
      options,
    );
    expect((await worker.runOnce()).completed).toBe(jobs);
    expect(most).toBe(2);
  },
);

test("without jitter the third failure is due again exactly one base later", async () => {
  const Task = defineTask({
    kind: "exact",
    payload: number,
    backoff: new Backoff({ base: "100s", cap: "300s" }),
  });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store, { jitterFraction: 0 }).register(Task, () => {
    throw new Error("no");
  });
  for (let run = 0; run < 3; run += 1) await worker.runOnce();
  const third = (await queue.journal(id))[2];
  const job = await queue.job(id);
  expect((job?.visibleAt?.getTime() ?? 0) - (third?.recordedAt.getTime() ?? 0)).toBe(100_000);
});

/** Connections that listen for notifications. */
async function idleListeners(): Promise<number> {
  const { rows } = await database.pool.query(
    "select count(*)::int4 as n from pg_stat_activity where datname = current_database() and query ilike 'listen %'",
  );
  return rows[0]?.n ?? 0;
}
