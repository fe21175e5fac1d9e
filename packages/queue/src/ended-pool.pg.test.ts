import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count } from "./testing/tasks.ts";

const database = await testDatabase();
const ended = {
  code: "database",
  isRetryable: false,
  message: expect.stringContaining("Cannot use a pool after calling end on the pool"),
};

afterEach(() => database.pool.query("truncate venturi_jobs, venturi_queue cascade"));

/** A pool whose only connection somebody has taken. */
async function exhausted(config: pg.PoolConfig = {}) {
  const pool = new pg.Pool({ connectionString: database.url, max: 1, ...config });
  return { pool, taken: await pool.connect() };
}

/** The turn in which the queue asks its pool for a connection. */
const asked = () => new Promise((resolve) => setImmediate(resolve));

async function storedJobs(): Promise<number> {
  const { rows } = await database.pool.query("select count(*)::int as count from venturi_jobs");
  return rows[0].count;
}

it.each([
  ["for ever", {}],
  ["for a while", { connectionTimeoutMillis: 60_000 }],
])(
  "rejects at once what waits %s for a connection of a pool that is ended, and what comes later",
  async (_, config) => {
    const { pool, taken } = await exhausted(config);
    const queue = new Queue(pool);
    const waiting = [1, 2].map((n) => queue.enqueue(Count({ n })));
    await asked();
    const behind = queue.enqueue(Count({ n: 3 }));
    const end = pool.end();
    for (const call of [...waiting, behind]) await expect(call).rejects.toMatchObject(ended);
    await expect(queue.enqueue(Count({ n: 4 }))).rejects.toMatchObject(ended);
    // Whoever holds the connection need not have given it back for this.
    taken.release();
    await end;
    expect(await storedJobs()).toBe(0);
  },
);

it("rejects what would have been given an idle connection in the same turn", async () => {
  const { pool, taken } = await exhausted();
  taken.release();
  const queue = new Queue(pool);
  const ending = new Promise<void>((resolve) => {
    const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
    const spied = (...args: unknown[]) => {
      queueMicrotask(() => resolve(pool.end()));
      return query(...args);
    };
    Object.assign(pool, { query: spied });
  });
  await expect(queue.enqueue(Count({ n: 1 }))).rejects.toMatchObject(ended);
  await ending;
  expect(await storedJobs()).toBe(0);
});

it("stores what is being made a connection when the pool is ended", async () => {
  const fresh = new pg.Pool({ connectionString: database.url, max: 1 });
  const stored = new Queue(fresh).enqueue(Count({ n: 1 }));
  await asked();
  expect([fresh.totalCount, fresh.waitingCount]).toEqual([1, 0]);
  const end = fresh.end();
  await stored;
  await end;
  expect(await storedJobs()).toBe(1);
});
