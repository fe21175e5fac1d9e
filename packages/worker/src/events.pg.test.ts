import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import {
  Backoff,
  defineTask,
  type JobContext,
  type JobId,
  Outcome,
  type RunEvent,
  TaskError,
} from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore, type PostgresTransaction } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { heardWhile, on } from "./testing/heard.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const backoff = new Backoff({ base: 1, cap: 1 });
const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

afterEach(() => expectInvariants(database.pool));

const ms = expect.any(Number);

/** Claims a job in the name of a worker that is never heard of again. */
async function claimAndDie(kind: string, backstop: number | null) {
  const { worker } = await store.startWorker({
    name: "gone",
    kinds: [kind],
    pollMaxMs: 60_000,
    workerTimeoutMs: 200,
    shortestLeaseMs: 60_000,
  });
  const kinds = [{ kind, limit: 1, leaseMs: 60_000, backstop }];
  await store.claim({ worker, limit: 1, kinds, turn: { counter: 0, ratio: null } });
}

/** As others do that take the holder of a job's first run for dead. */
async function takeAway(id: JobId): Promise<void> {
  const { rows } = await database.pool.query(
    `update venturi_workers set beat_at = beat_at - interval '1 h'
     where id = (select claimed_by from venturi_queue where venturi_ulid(job_id) = $1) returning id`,
    [id],
  );
  const recovery = { jobId: id, runCount: 1, holder: rows[0].id, delayMs: 60_000, note: "taken" };
  await store.recover({ recoveries: [{ ...recovery, outcome: "stale-recovered" }] });
}

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

describe("a job that runs", () => {
  test("is told of when it is claimed, started, ended and settled, each time about the same run", async () => {
    const Task = defineTask({ kind: "told", payload });
    const id = await queue.enqueue(Task({ n: 1 }), { priority: "high", headers: { a: "b" } });
    const heard = await heardWhile(() =>
      new Worker(store, { name: "w", concurrency: 2 }).register(Task, () => undefined).runOnce(),
    );
    const kind = Task.kind;
    const run = { id, kind, priority: "high", headers: { a: "b" }, runCount: 1, failureCount: 0 };
    expect(heard).toEqual([
      { channel: "venturi:worker", event: "started", worker: "w", kinds: [kind], concurrency: 2 },
      {
        channel: "venturi:claim",
        event: "claimed",
        worker: "w",
        jobs: [{ ...run, latencyMs: ms }],
        durationMs: ms,
      },
      { channel: "venturi:run", event: "start", worker: "w", run, latencyMs: ms, around: [] },
      {
        channel: "venturi:run",
        event: "end",
        worker: "w",
        run,
        result: "completed",
        error: null,
        durationMs: ms,
      },
      {
        channel: "venturi:settle",
        event: "settled",
        worker: "w",
        run,
        outcome: "completed",
        attempt: null,
        latencyMs: ms,
      },
      { channel: "venturi:worker", event: "stopped", worker: "w", unreleased: 0 },
    ]);
    const runs = new Set(heard.flatMap((event) => ("run" in event ? [event.run] : [])));
    expect(runs.size).toBe(1);
    for (const event of heard) {
      for (const value of Object.values(event))
        if (typeof value === "number") expect(value).toBeGreaterThanOrEqual(0);
    }
  });

  test("is told of with what it came to, the error's name and code, and which failure it was", async () => {
    const Fails = defineTask({ kind: "fails", payload, backoff });
    const Pauses = defineTask({ kind: "pauses", payload });
    const Dies = defineTask({ kind: "dies", payload });
    await queue.enqueueMany([Fails({ n: 1 }), Pauses({ n: 1 }), Dies({ n: 1 })]);
    const worker = new Worker(store)
      .register(Fails, () => {
        throw Object.assign(new TypeError("fetch failed"), { code: "ECONNREFUSED" });
      })
      .register(Pauses, () => Outcome.pauseFor("1h"))
      .register(Dies, () => {
        throw TaskError.permanent(new SyntaxError("no"));
      });
    const heard = await heardWhile(() => worker.runOnce());
    const ends = on(heard, "venturi:run").flatMap((event) =>
      event.event === "end" ? [[event.run.kind, event.result, event.error]] : [],
    );
    expect(ends).toEqual([
      ["fails", "failed", { name: "TypeError", code: "ECONNREFUSED" }],
      ["pauses", "paused", null],
      ["dies", "failed", { name: "SyntaxError", code: null }],
    ]);
    const settled = on(heard, "venturi:settle").flatMap((event) =>
      event.event === "settled" ? [[event.run.kind, event.outcome, event.attempt]] : [],
    );
    expect(settled.sort()).toEqual([
      ["dies", "dead", 1],
      ["fails", "retried", 1],
      ["pauses", "paused", null],
    ]);
  });

  test("has an end but no start where its payload does not decode", async () => {
    const Old = defineTask({ kind: "changed", payload });
    const New = defineTask({ kind: "changed", payload: v.object({ m: v.number() }) });
    await queue.enqueue(Old({ n: 1 }));
    const heard = await heardWhile(() =>
      new Worker(store).register(New, () => undefined).runOnce(),
    );
    expect(on(heard, "venturi:run")).toMatchObject([
      { event: "end", result: "failed", error: { name: "VenturiError", code: "validation" } },
    ]);
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", outcome: "dead" }]);
  });

  test("is told of without its payload, carry, note, attachment and the text of its error", async () => {
    const secret = "s3cr3t";
    const Task = defineTask({
      kind: "secret",
      payload: v.object({ text: v.string() }),
      carry: v.optional(v.object({ text: v.string() }), { text: "" }),
      backoff,
    });
    await queue.enqueueMany([1, 2, 3].map(() => Task({ text: secret })));
    let runs = 0;
    const worker = new Worker(store, { concurrency: 1 }).register(Task, (_, ctx) => {
      ctx.carry.text = secret;
      ctx.attach(secret);
      runs += 1;
      if (runs === 1) throw new Error(secret);
      return runs === 2 ? Outcome.pauseFor("1h", secret) : Outcome.completed(secret);
    });
    const heard = await heardWhile(() => worker.runOnce());
    expect(on(heard, "venturi:settle").length).toBe(3);
    expect(JSON.stringify(heard)).not.toContain(secret);
  });
});

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
      new Worker(store).register(Task, () => takeAway(id)).runOnce(),
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
      const client = await database.pool.connect();
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

describe("claims", () => {
  test("that are handed back unstarted are told of as claimed and as handed back", async () => {
    const Task = defineTask({ kind: "ahead", payload });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 }), Task({ n: 3 })]);
    const started = deferred();
    const worker = new Worker(store, { concurrency: 1, prefetch: 2, shutdownTimeout: "10s" });
    worker.register(Task, (_, ctx) => {
      started.resolve();
      return new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
    });
    const heard = await heardWhile(() => running(worker, () => started.promise));
    const claimed = on(heard, "venturi:claim").flatMap((event) =>
      event.event === "claimed" ? event.jobs.map(({ id }) => id) : [],
    );
    const back = on(heard, "venturi:claim").filter(({ event }) => event === "handed-back");
    expect(claimed).toEqual(ids);
    expect(back).toEqual(
      ids.slice(1).map((id) => ({
        event: "handed-back",
        worker: expect.any(String),
        id,
        kind: "ahead",
        runCount: 1,
        channel: "venturi:claim",
      })),
    );
    expect(on(heard, "venturi:settle")).toMatchObject([{ event: "settled", run: { id: ids[0] } }]);
    await Promise.all(ids.map((id) => queue.cancel(id)));
  });

  test("of a worker that is gone are told of when they have been recovered, also as dead at their backstop", async () => {
    const Task = defineTask({ kind: "gone", payload, backoff });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    await claimAndDie(Task.kind, null);
    await claimAndDie(Task.kind, 1);
    const entries: Promise<string | undefined>[] = [];
    const worker = new Worker(store, { name: "w", workerTimeout: 200 }).register(
      Task,
      () => undefined,
    );
    const heard = await heardWhile(
      () =>
        running(worker, () =>
          until(async () => (await queue.job(ids[0] as JobId))?.status === "completed"),
        ),
      (event) => {
        if (event.channel === "venturi:recover")
          entries.push(queue.journal(event.id).then(([entry]) => entry?.outcome));
      },
    );
    const common = { worker: "w", kind: "gone", runCount: 1, attempt: 1, reason: "silent" };
    const recovered = on(heard, "venturi:recover");
    expect(recovered.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(recovered).toMatchObject(
      recovered.map(({ id }) =>
        id === ids[0]
          ? { ...common, outcome: "stale-recovered" }
          : { ...common, outcome: "dead", delayMs: 0 },
      ),
    );
    expect(await Promise.all(entries)).toEqual(recovered.map(({ outcome }) => outcome));
    expect((await queue.journal(ids[1] as JobId)).map(({ outcome }) => outcome)).toEqual(["dead"]);
  });
});

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
