import { defineTask, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const anything = v.object({ n: v.number() });
const page = v.optional(v.object({ page: v.number() }), { page: 0 });

expectNoWarnings();
afterEach(() => expectInvariants(database.pool));

const lastEntry = async (id: string) => (await queue.journal(id)).at(-1);
const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);

describe("carry", () => {
  const Task = defineTask({ kind: "carry", payload: anything, carry: page });

  test("starts at its initial value and is kept by pause and retry", async () => {
    const id = await queue.enqueue(Task({ n: 1 }));
    const seen: number[] = [];
    const worker = new Worker(store).register(Task, (_, ctx) => {
      seen.push(ctx.carry.page);
      ctx.carry.page += 1;
      if (ctx.runCount === 1) return Outcome.pauseFor(0);
      if (ctx.runCount === 2) throw new Error("no");
      return undefined;
    });
    for (let run = 0; run < 3; run += 1) await worker.runOnce();
    expect(seen).toEqual([0, 1, 2]);
    expect(await queue.job(id)).toMatchObject({ status: "completed", carry: null });
  });

  test("changed by a run that ended in a defect is as it was before", async () => {
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      ctx.carry = { page: ctx.carry.page + 1 };
      if (ctx.runCount === 1) return Outcome.pauseFor(0);
      throw new ReferenceError("x is not defined");
    });
    for (let run = 0; run < 2; run += 1) await worker.runOnce();
    expect(await outcomes(id)).toEqual(["paused", "retried"]);
    expect(await queue.job(id)).toMatchObject({ carry: { page: 1 } });
  });

  test("of a job that died is as it was before its last run", async () => {
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store, { backstop: 1 }).register(Task, (_, ctx) => {
      ctx.carry = { page: ctx.carry.page + 1 };
      if (ctx.runCount === 1) return Outcome.pauseFor(0);
      throw new Error("no");
    });
    for (let run = 0; run < 2; run += 1) await worker.runOnce();
    expect(await queue.job(id)).toMatchObject({ status: "dead", carry: { page: 1 } });
  });

  test("that JSON cannot hold makes a pause or retry dead, and does not matter on completion", async () => {
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 }), Task({ n: 3 })]);
    const worker = new Worker(store).register(Task, ({ n }, ctx) => {
      const circular: { page: number; self?: unknown } = { page: 1 };
      circular.self = circular;
      ctx.carry = circular;
      if (n === 1) return Outcome.pauseFor(0);
      if (n === 2) throw new Error("no");
      return undefined;
    });
    await worker.runOnce();
    const [paused, failed, completed] = await Promise.all(ids.map(lastEntry));
    expect(paused).toMatchObject({ outcome: "dead", note: "carry could not be serialized" });
    expect(failed?.outcome).toBe("dead");
    expect(failed?.note).toMatch(/^carry could not be serialized/);
    expect(completed).toMatchObject({ outcome: "completed", note: null });
  });
});

describe("an attachment", () => {
  test("is kept with the run's entry, the last one given, false values too", async () => {
    const Task = defineTask({ kind: "attach", payload: v.object({ value: v.any() }) });
    const values = [0, false, "", null, { deep: [1, { a: "b" }] }];
    const ids = await queue.enqueueMany(values.map((value) => Task({ value })));
    const worker = new Worker(store).register(Task, ({ value }, ctx) => {
      ctx.attach("first");
      ctx.attach(value);
    });
    await worker.runOnce();
    for (const [index, id] of ids.entries()) {
      expect((await lastEntry(id))?.attachment).toEqual(values[index]);
    }
  });

  test("of undefined is none, and takes back an earlier one", async () => {
    const Task = defineTask({ kind: "attach_nothing", payload: v.string() });
    const id = await queue.enqueue(Task("x"));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      ctx.attach("first");
      ctx.attach(undefined);
    });
    await worker.runOnce();
    expect(await lastEntry(id)).toMatchObject({ attachment: null, note: null });
  });

  test("that JSON cannot hold is dropped, the outcome stays and the note says so", async () => {
    const Task = defineTask({ kind: "bad_attachment", payload: anything });
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const values = [circular, 5n, () => 5, "half \ud800"];
    const ids = await queue.enqueueMany(values.map((_, n) => Task({ n })));
    const worker = new Worker(store).register(Task, ({ n }, ctx) => {
      ctx.attach(values[n]);
      return Outcome.completed("done");
    });
    await worker.runOnce();
    for (const id of ids) {
      expect(await lastEntry(id)).toMatchObject({
        outcome: "completed",
        attachment: null,
        note: "done; attachment could not be serialized",
      });
    }
  });
});
