import { defineTask, isVenturiError, type JobContext, Outcome, TaskError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore, type PostgresTransaction } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { Kysely, PostgresDialect } from "kysely";
import type pg from "pg";
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
await database.pool.query("create table written (job_id text not null, run integer not null)");

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

type Context = JobContext<unknown, PostgresTransaction>;

const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : error);
const catchCode = (promise: Promise<unknown>) => promise.then(() => "resolved", codeOf);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const entries = async (id: string) =>
  (await queue.journal(id)).map(({ outcome, note }) => [outcome, note]);
const rowsOf = async (id: string): Promise<number> => {
  const { rows } = await database.pool.query("select from written where job_id = $1", [id]);
  return rows.length;
};
const uncommitted = ["retried", "completed in a transaction that did not commit"];

/** Runs `body` between BEGIN and COMMIT, and rolls back what rejects. */
async function inTransaction<T>(body: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await database.pool.connect();
  try {
    await client.query("begin");
    const result = await body(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

async function write(client: pg.PoolClient, ctx: Pick<Context, "id" | "runCount">): Promise<void> {
  await client.query("insert into written values ($1, $2)", [ctx.id, ctx.runCount]);
}

/** As others do that take the holder for dead. */
async function takeAway(id: string): Promise<void> {
  const { rows } = await database.pool.query(
    `update venturi_workers set beat_at = beat_at - interval '1 h'
     where id = (select claimed_by from venturi_queue where venturi_ulid(job_id) = $1) returning id`,
    [id],
  );
  const recovery = { jobId: id, runCount: 1, holder: rows[0].id, delayMs: 0, note: "taken" };
  const recoveries = [{ ...recovery, outcome: "stale-recovered" }] as const;
  expect((await store.recover({ recoveries })).applied).toEqual([true]);
}

describe("what a handler writes and the end of its run", () => {
  test("are committed together, with note and attachment", async () => {
    const Task = defineTask({ kind: "together", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (client) => {
        await write(client, ctx);
        ctx.attach({ rows: 1 });
        await ctx.complete(client, "wrote one");
        expect(await queue.job(id)).toMatchObject({ status: "claimed" });
      }),
    );
    expect(await worker.runOnce()).toEqual({ completed: 1, paused: 0, retried: 0, dead: 0 });
    expect(await rowsOf(id)).toBe(1);
    expect(await entries(id)).toEqual([["completed", "wrote one"]]);
    expect((await queue.journal(id))[0]?.attachment).toEqual({ rows: 1 });
    expect(await queue.job(id)).toMatchObject({ status: "completed", failureCount: 0 });
  });

  test("are committed together in a Kysely transaction as well", async () => {
    const db = new Kysely<{ written: { job_id: string; run: number } }>({
      dialect: new PostgresDialect({ pool: database.pool }),
    });
    const Task = defineTask({ kind: "kysely", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) =>
      db.transaction().execute(async (trx) => {
        await trx.insertInto("written").values({ job_id: id, run: ctx.runCount }).execute();
        await ctx.complete(trx);
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await rowsOf(id)).toBe(1);
    expect(await entries(id)).toEqual([["completed", null]]);
  });

  test("are rolled back together: a handler that throws fails as ever", async () => {
    const Task = defineTask({ kind: "rolled_back", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (client) => {
        await write(client, ctx);
        await ctx.complete(client);
        throw new Error("changed my mind");
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 0, retried: 1 });
    expect(await rowsOf(id)).toBe(0);
    expect(await entries(id)).toEqual([["retried", "changed my mind"]]);
  });

  test("a failure for good is one, where the transaction was rolled back", async () => {
    const Task = defineTask({ kind: "for_good", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (client) => {
        await ctx.complete(client);
        throw TaskError.permanent("no use");
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ dead: 1 });
    expect(await entries(id)).toEqual([["dead", "no use"]]);
  });
});

describe("the claim still held and the handler returned", () => {
  test("is a retryable failure that says so, with the carry as it was stored", async () => {
    const carry = v.optional(v.number(), 0);
    const Task = defineTask({ kind: "swallowed", payload, carry });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      ctx.carry = 5;
      await inTransaction(async (client) => {
        await ctx.complete(client);
        if (ctx.runCount === 1) throw new Error("rolled back");
      }).catch(() => undefined);
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 0, retried: 1 });
    expect(await entries(id)).toEqual([uncommitted]);
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1, carry: null });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("is found also where the handler forgot to commit before its connection closed", async () => {
    const Task = defineTask({ kind: "forgot", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const client = await database.pool.connect();
      await client.query("begin");
      await write(client, ctx);
      await ctx.complete(client);
      client.release(true);
    });
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
    expect(await entries(id)).toEqual([uncommitted]);
    expect(await rowsOf(id)).toBe(0);
  });

  test("a transaction that is still open then is waited for, and others are not held up", async () => {
    const Task = defineTask({ kind: "still_open", payload });
    const [open, other] = (await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })])) as [
      string,
      string,
    ];
    const opened = deferred<pg.PoolClient>();
    const worker = new Worker(store, { concurrency: 2 }).register(Task, async ({ n }, ctx) => {
      if (n === 2) return;
      const client = await database.pool.connect();
      await client.query("begin");
      await ctx.complete(client);
      opened.resolve(client);
    });
    await running(worker, async () => {
      const client = await opened.promise;
      await until(async () => (await entries(other)).length === 1);
      await wait(200);
      expect(await entries(open)).toEqual([]);
      await client.query("commit");
      client.release();
    });
    expect(await entries(open)).toEqual([["completed", null]]);
  });
});

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

describe("a second call", () => {
  test("rejects with claim-lost in the same transaction, which can commit all the same", async () => {
    const Task = defineTask({ kind: "twice", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const seen: unknown[] = [];
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (client) => {
        await write(client, ctx);
        await ctx.complete(client);
        seen.push(await catchCode(ctx.complete(client)));
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(seen).toEqual(["claim-lost"]);
    expect(await rowsOf(id)).toBe(1);
  });

  test("rejects with claim-lost in another transaction, without waiting for the first", async () => {
    const Task = defineTask({ kind: "twice_apart", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const seen: unknown[] = [];
    const worker = new Worker(store).register(Task, (_, ctx) =>
      inTransaction(async (first) => {
        await ctx.complete(first);
        seen.push(
          await catchCode(
            inTransaction(async (second) => {
              await write(second, ctx);
              await ctx.complete(second);
            }),
          ),
        );
      }),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(seen).toEqual(["claim-lost"]);
    expect(await rowsOf(id)).toBe(0);
  });

  test("is possible after one that the database refused", async () => {
    const Task = defineTask({ kind: "again", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const seen: unknown[] = [];
    const worker = new Worker(store).register(Task, async (_, ctx) => {
      const broken = inTransaction(async (client) => {
        await client.query("select 1/0").catch(() => undefined);
        await ctx.complete(client);
      });
      seen.push(await catchCode(broken));
      await inTransaction((client) => ctx.complete(client));
    });
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(seen).toEqual(["database"]);
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
      await takeAway(id);
      const client = await database.pool.connect();
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

test("what is no transaction is refused, and the run goes on", async () => {
  const Task = defineTask({ kind: "no_transaction", payload });
  await queue.enqueue(Task({ n: 1 }));
  const seen: unknown[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    for (const tx of [database.pool, undefined, {}]) {
      seen.push(await catchCode(ctx.complete(tx as never)));
    }
    await inTransaction((client) => ctx.complete(client));
  });
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(seen).toEqual(["invalid-argument", "invalid-argument", "invalid-argument"]);
});

test("a store without transactions says so", async () => {
  const Task = defineTask({ kind: "none", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const { complete: _, ...without } = wrapStore(store, () => ({}));
  const seen: unknown[] = [];
  const worker = new Worker(without).register(Task, async (_payload, ctx) => {
    seen.push(await catchCode(ctx.complete({} as never)));
  });
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(seen).toEqual(["invalid-argument"]);
  expect(await entries(id)).toEqual([["completed", null]]);
});
