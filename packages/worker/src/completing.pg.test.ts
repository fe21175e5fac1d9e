import { defineTask, TaskError } from "@venturi/core";
import { Kysely, PostgresDialect } from "kysely";
import type pg from "pg";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { catchCode } from "./testing/codes.ts";
import { completingFixture } from "./testing/completing-fixture.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const { pool, store, queue, inTransaction, entries, rowsOf, write } = await completingFixture();
const payload = v.object({ n: v.number() });
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const uncommitted = ["retried", "completed in a transaction that did not commit"];

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
      dialect: new PostgresDialect({ pool: pool }),
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
      const client = await pool.connect();
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
      const client = await pool.connect();
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

test("what is no transaction is refused, and the run goes on", async () => {
  const Task = defineTask({ kind: "no_transaction", payload });
  await queue.enqueue(Task({ n: 1 }));
  const seen: unknown[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    for (const tx of [pool, undefined, {}]) {
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
