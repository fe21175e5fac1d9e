import { defineTask, Merge } from "@venturi/core";
import pg from "pg";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count } from "./testing/tasks.ts";

const executor = { query: async () => ({ rows: [] }) };

describe("what a queue is made over", () => {
  it.each([null, undefined, 5, "postgres://localhost", {}, [], { connect: () => 1 }, () => 1])(
    "is not %j",
    (producer) => {
      expect(() => new Queue(producer as never)).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "producer" }),
      );
    },
  );

  it("is told by its type where it is none, and a connection string is not repeated", () => {
    const refusal = (producer: unknown) => () => new Queue(producer as never);
    const what = "producer is nothing that a queue can enqueue through";
    expect(refusal("postgres://u:hunter2@h/d")).toThrow(`${what} (got a string): pass a pg Pool`);
    expect(refusal(undefined)).toThrow(`${what} (got undefined)`);
    expect(refusal({})).toThrow(`${what} (got an object)`);
  });

  it("is no pool or client of pg that asks for binary answers", () => {
    const config = { connectionString: "postgres://127.0.0.1/none", binary: true };
    for (const producer of [new pg.Pool(config), new pg.Client(config)])
      expect(() => new Queue(producer)).toThrow(/producer asks for binary answers/);
  });

  it("may be a pool that lets nothing be added", async () => {
    const answer = { rows: [{ jobs: 1, others: null }] };
    const pool = { query: async () => answer, connect: () => undefined, on: () => undefined };
    const frozen = Object.freeze({ ...pool, totalCount: 0 });
    expect(await new Queue(frozen).enqueue(Count({ n: 1 }))).toHaveLength(26);
  });

  it("is not a store of another version", () => {
    const store = { portVersion: 99, capabilities: {}, enqueue: async () => ({ jobs: [] }) };
    expect(() => new Queue(store as never)).toThrow(/version 99/);
  });
});

describe("options", () => {
  it.each([
    [{ prefix: "Venturi" }, "prefix"],
    [{ prefix: "x".repeat(40) }, "prefix"],
    [{ schema: "" }, "schema"],
    [{ preparedStatements: "no" }, "preparedStatements"],
    [{ logger: {} }, "logger"],
    [{ perfix: "a" }, "perfix"],
    [null, "options"],
    ["venturi", "options"],
  ])("%j is refused, naming the one that is wrong", (options, argument) => {
    expect(() => new Queue(executor, options as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument }),
    );
  });

  it("that name tables are a store's own", () => {
    const store = { portVersion: 1, capabilities: {}, enqueue: async () => ({ jobs: [] }) };
    expect(() => new Queue(store as never, { prefix: "a" })).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "prefix" }),
    );
  });
});

it("an executor that answers with something else is told what is missing", async () => {
  for (const query of [async () => ({ rows: [] }), async () => [], async () => undefined]) {
    const queue = new Queue({ query } as never);
    await expect(queue.enqueue(Count({ n: 1 }))).rejects.toMatchObject({ code: "database" });
  }
});

it.each([
  ["no rows", { rows: [] }],
  ["rows that are none", {}],
  ["the rows themselves", []],
])("so is one that answers a merge function with %s", async (_, answer) => {
  const Sum = defineTask({
    kind: "sum",
    payload: v.number(),
    dedupKey: () => "total",
    merge: (incoming, existing) => Merge.with(incoming + existing.payload),
  });
  const queue = new Queue({ query: async () => answer } as never);
  await expect(queue.enqueue(Sum(1))).rejects.toMatchObject({
    code: "database",
    message: expect.stringContaining("pass what runs { query(text, params) }"),
  });
});
