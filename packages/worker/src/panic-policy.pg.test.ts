import { AssertionError } from "node:assert";
import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const carry = v.optional(v.number(), 0);

expectNoWarnings();
afterEach(() => expectInvariants(database.pool));

const endless = (): number => endless() + 1;
const defects: readonly (readonly [string, () => unknown])[] = [
  ["a ReferenceError", () => new ReferenceError("x is not defined")],
  ["a SyntaxError", () => JSON.parse("{")],
  ["an AssertionError", () => new AssertionError({ message: "no" })],
  ["a RangeError from the stack", endless],
  ["a TypeError", () => (undefined as unknown as { a: number }).a],
];

test.each(defects)(
  "a defect is a failure like any other by default, but its carry is discarded: %s",
  async (name, raise) => {
    const Task = defineTask({ kind: `retry ${name}`, payload, carry });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      ctx.carry = 7;
      throw raise();
    });
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1, carry: null });
  },
);

test.each(defects)('with panicPolicy "dead" a defect is dead at once: %s', async (name, raise) => {
  const Task = defineTask({ kind: `dead ${name}`, payload, carry });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store, { panicPolicy: "dead" }).register(Task, async (_, ctx) => {
    ctx.carry = 7;
    throw raise();
  });
  expect(await worker.runOnce()).toMatchObject({ dead: 1 });
  expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 1, carry: null });
});

test("the panic policy leaves ordinary failures alone, a failed fetch among them", async () => {
  const Task = defineTask({ kind: "ordinary", payload, carry });
  const ids = await queue.enqueueMany([Task({ n: 0 }), Task({ n: 1 })]);
  const worker = new Worker(store, { panicPolicy: "dead" }).register(Task, async ({ n }, ctx) => {
    ctx.carry = 7;
    if (n === 0) throw new Error("no");
    await fetch("http://127.0.0.1:9/");
  });
  expect(await worker.runOnce()).toMatchObject({ retried: 2 });
  for (const id of ids) expect(await queue.job(id)).toMatchObject({ status: "pending", carry: 7 });
});

test.each([
  ["smaller than concurrency + 1 is warned about once", 4, 1],
  ["of concurrency + 1 is large enough", 3, 0],
])("a shared pool %s", async (_, concurrency, warnings) => {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  const messages: string[] = [];
  const ignore = () => undefined;
  const warn = (message: string) => void messages.push(message);
  const logger = { debug: ignore, info: ignore, warn, error: ignore };
  const Task = defineTask({ kind: "pool", payload });
  const worker = new Worker(new PostgresStore({ pool }), { concurrency, logger });
  worker.register(Task, ignore);
  for (let call = 0; call < 2; call += 1) await worker.runOnce();
  expect(messages.filter((message) => message.includes("shares a pool"))).toHaveLength(warnings);
  await pool.end();
});
