import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { expect, test } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { registration, startWorker } from "./testing/store-fixture.ts";

const { url } = await testDatabase();

test.each<[string, (store: PostgresStore) => Promise<unknown>]>([
  ["a query", (store) => store.stats()],
  ["work in a transaction", (store) => store.migrate()],
  ["the start of a worker", (store) => startWorker(store)],
])(
  "%s that waits for a connection of a pool that is ended is rejected at once, and so are later ones",
  async (_, call) => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const store = new PostgresStore({ pool });
    // What a store asks once only has been asked.
    await store.stats();
    const taken = await pool.connect();
    const waiting = call(store);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pool.waitingCount).toBe(1);
    const end = pool.end();
    const ended = {
      code: "database",
      isRetryable: false,
      message: expect.stringContaining("Cannot use a pool after calling end on the pool"),
    };
    expect(await failureOf(waiting)).toMatchObject(ended);
    expect(await failureOf(call(store))).toMatchObject(ended);
    await store.close();
    taken.release();
    await end;
  },
);

test("a store is closed whose statements waited for a connection of a pool that is ended", async () => {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const store = new PostgresStore({ pool });
  const worker = await startWorker(store);
  const taken = await pool.connect();
  const waiting = Promise.allSettled([
    store.beat({ ...registration, worker }),
    store.beat({ ...registration, worker, workerTimeoutMs: 3_000 }),
  ]);
  const end = pool.end();
  await store.close();
  expect((await waiting).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  taken.release();
  await end;
});
