import { Backoff, defineTask, Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const anything = v.object({ n: v.number() });
const page = v.optional(v.object({ page: v.number() }), { page: 0 });

expectNoWarnings();
afterEach(() => expectInvariants(database.pool));

const lastEntry = async (id: string) => (await queue.journal(id)).at(-1);
const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);

describe("what a handler throws", () => {
  const circular = new Error("round");
  circular.cause = circular;
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error("hands off");
      },
    },
  );
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["an empty string", ""],
    ["a symbol", Symbol("s")],
    ["a proxy that throws", hostile],
    ["a frozen error", Object.freeze(new Error("frozen"))],
    ["an error with a circular cause", circular],
    ["an error without a message", new Error("")],
    ["an error with U+0000", new Error("a\u0000b")],
    ["an error with half a surrogate pair", new Error("a\ud800b")],
    ["an error of ten megabytes", new Error("x".repeat(10_000_000))],
    ["an AggregateError", new AggregateError([new Error("one"), new Error("two")])],
  ])("is survived and noted: %s", async (name, thrown) => {
    const Task = defineTask({ kind: `throws ${name}`, payload: anything });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, () => {
      throw thrown;
    });
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
    const entry = await lastEntry(id);
    expect(entry?.outcome).toBe("retried");
    expect(entry?.note).toMatch(/./);
    expect(entry?.note?.length).toBeLessThanOrEqual(4_096);
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1 });
  });

  test("a thrown error and a rejected promise are the same", async () => {
    const Task = defineTask({ kind: "throw_or_reject", payload: anything });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      if (ctx.runCount === 1) throw new Error("thrown");
      return ctx.runCount === 2 ? Promise.reject(new Error("rejected")) : undefined;
    });
    for (let run = 0; run < 3; run += 1) await worker.runOnce();
    expect((await queue.journal(id)).map(({ outcome, note }) => [outcome, note])).toEqual([
      ["retried", "thrown"],
      ["retried", "rejected"],
      ["completed", null],
    ]);
  });

  test("keeps name, code and stack of the error in the journal", async () => {
    const Task = defineTask({ kind: "detail", payload: anything });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, () => {
      throw Object.assign(new RangeError("too far"), { code: "E_FAR" });
    });
    await worker.runOnce();
    const { detail } = (await lastEntry(id)) ?? {};
    expect(detail).toMatchObject({ name: "RangeError", code: "E_FAR" });
    expect(detail?.stack).toContain("RangeError: too far");
  });

  test("TaskError.retry sets the delay, whatever the backoff says", async () => {
    const Task = defineTask({ kind: "retry_after", payload: anything });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, () => {
      throw TaskError.retry("rate limited", { after: "1h" });
    });
    await worker.runOnce();
    const entry = await lastEntry(id);
    const job = await queue.job(id);
    expect(entry?.note).toBe("rate limited");
    expect((job?.visibleAt?.getTime() ?? 0) - (entry?.recordedAt.getTime() ?? 0)).toBe(3_600_000);
  });

  test("a duration that is none fails that run like any other error", async () => {
    const Task = defineTask({ kind: "bad_pause", payload: anything });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, () => Outcome.pauseFor(Number.NaN));
    await worker.runOnce();
    expect(await lastEntry(id)).toMatchObject({ outcome: "retried" });
    expect((await lastEntry(id))?.note).toMatch(/is not a duration/);
  });
});

describe("what a handler returns", () => {
  test("something that is no outcome completes, and is warned about once per kind", async () => {
    const { logger, records } = recordingLogger();
    const Task = defineTask({ kind: "foreign", payload: anything });
    await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    const worker = new Worker(store, { logger });
    worker.register(Task, (() => 5) as never);
    expect(await worker.runOnce()).toMatchObject({ completed: 2 });
    const warnings = records.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ fields: { kind: "foreign" } });
    expect(warnings[0]?.message).toMatch(/return an Outcome or nothing/);
  });

  test("a pause until a far date is kept, and does not come back early", async () => {
    const Task = defineTask({ kind: "far", payload: anything });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    const until = new Date("2200-01-01T00:00:00Z");
    const worker = new Worker(store).register(Task, ({ n }) =>
      n === 1 ? Outcome.pauseUntil(until) : Outcome.pauseFor(Number.POSITIVE_INFINITY),
    );
    expect(await worker.runOnce()).toMatchObject({ paused: 2 });
    const [first, second] = await Promise.all(ids.map((id) => queue.job(id)));
    expect(first?.visibleAt).toEqual(until);
    expect(second?.visibleAt?.getUTCFullYear()).toBe(9999);
    expect(await worker.runOnce()).toMatchObject({ paused: 0 });
  });
});

describe("data that does not decode", () => {
  test("is dead at once, with where and why, its handler not called, the others untouched", async () => {
    const Task = defineTask({ kind: "poison", payload: v.object({ n: v.number() }) });
    const ids = await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Task({ n })));
    await database.pool.query(
      `update venturi_jobs set payload = '{"n": "three"}' where venturi_ulid(id) = $1`,
      [ids[2]],
    );
    const ran: number[] = [];
    const worker = new Worker(store, { concurrency: 5 }).register(Task, ({ n }) => {
      ran.push(n);
    });
    expect(await worker.runOnce()).toEqual({ completed: 4, paused: 0, retried: 0, dead: 1 });
    expect(ran.sort()).toEqual([0, 1, 3, 4]);
    const dead = await lastEntry(ids[2] as string);
    expect(dead?.note).toMatch(/payload\.n/);
    expect(dead?.note).not.toContain("three");
    expect(await queue.job(ids[2] as string)).toMatchObject({ status: "dead", failureCount: 1 });
  });

  test("in the carry is treated the same", async () => {
    const Task = defineTask({ kind: "poison_carry", payload: anything, carry: page });
    const id = await queue.enqueue(Task({ n: 1 }));
    await database.pool.query(
      `update venturi_queue set carry = '{"page": "x"}' where venturi_ulid(job_id) = $1`,
      [id],
    );
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ dead: 1 });
    expect((await lastEntry(id))?.note).toMatch(/carry\.page/);
  });

  test("a schema may be asynchronous, and reject", async () => {
    const Task = defineTask({
      kind: "async_schema",
      payload: v.pipeAsync(
        v.objectAsync({ n: v.number() }),
        v.checkAsync(async ({ n }) => n < 10, "too large"),
      ),
    });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    await database.pool.query(
      `update venturi_jobs set payload = '{"n": 20}' where venturi_ulid(id) = $1`,
      [ids[1]],
    );
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ completed: 1, dead: 1 });
    expect((await lastEntry(ids[1] as string))?.note).toMatch(/too large/);
  });
});

describe("backoff", () => {
  test("is the task's own, by payload, before the worker's", async () => {
    const Task = defineTask({
      kind: "own_backoff",
      payload: v.object({ base: v.number() }),
      backoff: ({ base }) => new Backoff({ base, cap: "1d" }),
    });
    const id = await queue.enqueue(Task({ base: 60_000 }));
    const worker = new Worker(store, { jitterFraction: 0 }).register(Task, () => {
      throw new Error("no");
    });
    for (let run = 0; run < 3; run += 1) await worker.runOnce();
    const entry = await lastEntry(id);
    const visibleAt = (await queue.job(id))?.visibleAt?.getTime() ?? 0;
    expect(visibleAt - (entry?.recordedAt.getTime() ?? 0)).toBe(60_000);
  });

  test("of a task that throws is the worker's, with a warning", async () => {
    const { logger, records } = recordingLogger();
    const Task = defineTask({
      kind: "broken_backoff",
      payload: anything,
      backoff: () => {
        throw new Error("backoff is broken");
      },
    });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store, { logger }).register(Task, () => {
      throw new Error("no");
    });
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1 });
    expect(
      records.some(({ level, message }) => level === "warn" && message.includes("backoff")),
    ).toBe(true);
  });
});

describe("backstop", () => {
  test("of a task goes before the worker's; null never ends", async () => {
    const Endless = defineTask({ kind: "endless", payload: anything, backstop: null });
    const Default = defineTask({ kind: "default", payload: anything });
    const ids = await queue.enqueueMany([Endless({ n: 1 }), Default({ n: 1 })]);
    const fail = () => {
      throw TaskError.retry("no", { after: 0 });
    };
    const worker = new Worker(store, { backstop: 3 })
      .register(Endless, fail)
      .register(Default, fail);
    for (let run = 0; run < 5; run += 1) await worker.runOnce();
    const [endless, other] = await Promise.all(ids.map((id) => queue.job(id)));
    expect(endless).toMatchObject({ status: "pending", failureCount: 5 });
    expect(other).toMatchObject({ status: "dead", failureCount: 3 });
  });
});

test("one job that cannot be settled does not hold up the others: it fails, and says why", async () => {
  const Task = defineTask({ kind: "refused", payload: anything });
  const ids = await queue.enqueueMany(Array.from({ length: 20 }, (_, n) => Task({ n })));
  await database.pool.query(`create function no_sevens() returns trigger language plpgsql as $$
    begin
      if new.attachment = '7' then raise exception 'no sevens here'; end if;
      return new;
    end $$`);
  await database.pool.query(
    "create trigger no_sevens before insert on venturi_journal for each row execute function no_sevens()",
  );
  const worker = new Worker(store, { concurrency: 20 }).register(Task, ({ n }, ctx) =>
    ctx.attach(n),
  );
  try {
    expect(await worker.runOnce()).toEqual({ completed: 19, paused: 0, retried: 1, dead: 0 });
  } finally {
    await database.pool.query("drop trigger no_sevens on venturi_journal");
  }
  const entry = await lastEntry(ids[7] as string);
  expect(entry).toMatchObject({ outcome: "retried", attachment: null });
  expect(entry?.note).toMatch(/settled as completed.*no sevens here/);
});

test("runs that cannot be settled at all hold up no others, and are settled once they can be", async () => {
  const backoff = new Backoff({ base: 1, cap: 1 });
  const Barred = defineTask({ kind: "barred", payload: anything, backoff });
  const Other = defineTask({ kind: "let through", payload: anything });
  const barred = await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Barred({ n })));
  await database.pool.query(`create function no_barred() returns trigger language plpgsql as $$
    begin
      if new.kind_id = (select id from venturi_kinds where name = 'barred') then raise exception 'barred'; end if;
      return new;
    end $$`);
  await database.pool.query(
    "create trigger no_barred before insert on venturi_journal for each row execute function no_barred()",
  );
  const isCompleted = async (id: string) => (await queue.job(id))?.status === "completed";
  let started = 0;
  const worker = new Worker(store, { concurrency: 8 })
    .register(Barred, () => {
      started += 1;
    })
    .register(Other, () => undefined);
  await running(worker, async () => {
    await until(() => started === barred.length);
    for (let n = 0; n < 10; n += 1) {
      const id = await queue.enqueue(Other({ n }));
      await until(() => isCompleted(id), { withinMs: 5_000 });
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(started).toBe(barred.length);
    await database.pool.query("drop trigger no_barred on venturi_journal");
    for (const id of barred) await until(() => isCompleted(id), { withinMs: 20_000 });
  });
  for (const id of barred) expect(await outcomes(id)).toEqual(["retried", "completed"]);
}, 60_000);

test("a detached rejection in a handler is the host's to see, and the job completes", async () => {
  const Task = defineTask({ kind: "detached", payload: anything });
  const id = await queue.enqueue(Task({ n: 1 }));
  const seen: unknown[] = [];
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => seen.push(reason));
  // Told first under --unhandled-rejections=strict, where a process that does not care about it ends.
  const strictListeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", () => undefined);
  try {
    const worker = new Worker(store).register(Task, () => {
      void Promise.reject(new Error("nobody awaits this"));
    });
    await running(worker, () => until(async () => (await queue.job(id))?.status === "completed"));
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of listeners) process.on("unhandledRejection", listener);
    process.removeAllListeners("uncaughtException");
    for (const listener of strictListeners) process.on("uncaughtException", listener);
  }
  expect(seen).toMatchObject([{ message: "nobody awaits this" }]);
});
