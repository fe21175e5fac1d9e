import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count } from "./testing/tasks.ts";

const database = await testDatabase({ migrated: false });

it.each([
  ["the tables", {}],
  ["the schema", { schema: "nowhere" }],
])("a database without %s says that migrate has to be run", async (_, options) => {
  const queue = new Queue(database.pool, options);
  const calls = [1, 2, 3].map((n) => queue.enqueue(Count({ n })));
  for (const result of await Promise.allSettled(calls)) {
    expect(result).toMatchObject({
      status: "rejected",
      reason: {
        code: "not-migrated",
        isRetryable: false,
        message: expect.stringContaining("run migrate"),
      },
    });
  }
});

it("a role without the right to produce is told so", async () => {
  const client = await database.pool.connect();
  await client.query("begin");
  await client.query("create schema locked; create role venturi_nobody");
  await client.query("set local role venturi_nobody");
  const within = new Queue(database.pool, { schema: "locked" }).within(client);
  await expect(within.enqueue(Count({ n: 1 }))).rejects.toMatchObject({
    code: "database",
    sqlState: "42501",
    isRetryable: false,
  });
  await client.query("rollback");
  client.release();
});
