import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import type { SqlExecutor } from "./sql-executor.ts";
import { Count, Kept, Replaced } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));

afterEach(() => expectInvariants(database.pool));

/** The pool, counting statements and how many are under way at once. */
function counted() {
  const seen = { statements: 0, atOnce: 0 };
  let underWay = 0;
  const executor: SqlExecutor = {
    async query(text, params) {
      seen.statements += 1;
      underWay += 1;
      seen.atOnce = Math.max(seen.atOnce, underWay);
      try {
        return await database.pool.query(text, params);
      } finally {
        underWay -= 1;
      }
    },
  };
  return { queue: new Queue(executor), seen };
}

describe("concurrent callers", () => {
  it("share statements, of which one is in flight at a time", async () => {
    const { queue, seen } = counted();
    const caller = async (first: number) => {
      const ids: string[] = [];
      for (let n = 0; n < 20; n += 1) ids.push(await queue.enqueue(Count({ n: first + n })));
      return ids;
    };
    const callers = Array.from({ length: 64 }, (_, index) => caller(index * 20));
    const ids = (await Promise.all(callers)).flat();
    expect(new Set(ids).size).toBe(64 * 20);
    expect(seen.atOnce).toBe(1);
    expect(seen.statements).toBeLessThanOrEqual(40);
    const jobs = await Promise.all([0, 500, 1279].map((n) => operator.job(ids[n] as string)));
    expect(jobs.map((job) => job?.payload)).toEqual([{ n: 0 }, { n: 500 }, { n: 1279 }]);
  });

  it("of one key leave one pending job", async () => {
    const { queue } = counted();
    const calls = Array.from({ length: 50 }, (_, n) => queue.enqueue(Replaced({ key: "one", n })));
    const ids = new Set(await Promise.all(calls));
    expect(ids.size).toBe(1);
    const [id] = ids;
    expect(await operator.job(id as string)).toMatchObject({ payload: { key: "one", n: 49 } });
  });

  it("of one key, from many queues, leave one pending job", async () => {
    const queues = Array.from({ length: 10 }, () => new Queue(database.pool));
    const calls = queues.flatMap((queue) =>
      [1, 2, 3, 4, 5].map((n) => queue.enqueue(Replaced({ key: "many", n }))),
    );
    expect(new Set(await Promise.all(calls)).size).toBe(1);
  });

  it("are not told of another's bad job", async () => {
    const { queue, seen } = counted();
    const id = await queue.enqueue(Kept({ key: "taken", n: 0 }));
    seen.statements = 0;
    const calls = Array.from({ length: 64 }, (_, n) =>
      n === 40 ? queue.enqueue(Count({ n }), { id }) : queue.enqueue(Count({ n })),
    );
    const results = await Promise.allSettled(calls);
    const failed = results.flatMap((result) => (result.status === "rejected" ? [result] : []));
    expect(failed.map(({ reason }) => reason.code)).toEqual(["id-conflict"]);
    expect(results[40]?.status).toBe("rejected");
    expect(seen.statements).toBeLessThanOrEqual(1 + 2 * 6);
  });

  it("are not told of a job that only the database refuses", async () => {
    await database.pool.query(
      `alter table venturi_jobs add constraint no_unlucky_numbers
         check (payload -> 'n' is distinct from '13313'::jsonb)`,
    );
    const { queue } = counted();
    const calls = [1, 13_313, 2].map((n) => queue.enqueue(Count({ n })));
    const results = await Promise.allSettled(calls);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(results[1]).toMatchObject({
      reason: { code: "database", sqlState: "23514", isRetryable: false },
    });
  });
});

it("serialization failures are repeated outside of transactions", async () => {
  await database.pool.query(
    `alter database "${new URL(database.url).pathname.slice(1)}"
       set default_transaction_isolation = 'serializable'`,
  );
  const pool = new pg.Pool({ connectionString: database.url, max: 8 });
  try {
    const queues = Array.from({ length: 8 }, () => new Queue(pool));
    const calls = queues.flatMap((queue) =>
      Array.from({ length: 20 }, async (_, n) => queue.enqueue(Replaced({ key: "strict", n }))),
    );
    const ids = await Promise.all(calls);
    expect(new Set(ids).size).toBe(1);
    const { rows } = await pool.query(
      "select count(*)::int as count from venturi_queue where dedup_key = 'strict'",
    );
    expect(rows).toEqual([{ count: 1 }]);
  } finally {
    await pool.end();
  }
});

it("a job without a key does not wait for a key that an open transaction holds", async () => {
  const pool = new pg.Pool({ connectionString: database.url });
  const queue = new Queue(pool);
  const client = await pool.connect();
  try {
    await client.query("begin");
    await queue.within(client).enqueue(Replaced({ key: "held", n: 1 }));
    const keyed = queue.enqueue(Replaced({ key: "held", n: 2 }));
    const waiting =
      "select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()";
    while ((await database.pool.query(waiting)).rows.length === 0);
    // The transaction's own owner may well await this one before it commits.
    expect(await queue.enqueue(Count({ n: 1 }))).toMatch(/^[0-9A-Z]{26}$/);
    await client.query("commit");
    await keyed;
  } finally {
    client.release();
    await pool.end();
  }
});

describe("a key that an open transaction holds", () => {
  it("fails only the call that needs it, not those that share its statement", async () => {
    const holder = await database.pool.connect();
    // Whoever is the first to use a kind holds its name as well.
    await new Queue(holder).enqueue(Replaced({ key: "known", n: 0 }));
    await holder.query("begin");
    await new Queue(holder).enqueue(Replaced({ key: "held", n: 1 }));
    const impatient = new pg.Pool({
      connectionString: database.url,
      options: "-c lock_timeout=200ms",
    });
    const queue = new Queue(impatient);
    const [held, ...others] = await Promise.allSettled([
      queue.enqueue(Replaced({ key: "held", n: 2 })),
      queue.enqueue(Replaced({ key: "free 1", n: 3 })),
      queue.enqueue(Kept({ key: "free 2", n: 4 })),
    ]);
    expect(held).toMatchObject({
      status: "rejected",
      reason: { code: "database", sqlState: "55P03", isRetryable: true },
    });
    expect(others.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    await holder.query("commit");
    holder.release();
    await impatient.end();
  });
});
