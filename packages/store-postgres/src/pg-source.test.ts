import { EventEmitter } from "node:events";
import { expect, test, vi } from "vitest";
import type { PgQuery } from "./pg-like.ts";
import { pgSource, pgTransaction } from "./pg-source.ts";
import { statement } from "./sql/statement.ts";

const silent = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 };

/** How long a statement of a verb may go unanswered. */
async function patience(verb: string): Promise<number | undefined> {
  const queries: PgQuery[] = [];
  const client = {
    query: async (query: PgQuery) => {
      queries.push(query);
      return { rows: [] };
    },
  };
  await pgTransaction(client, true).run(statement(verb, "select 1"), []);
  return queries[0]?.query_timeout;
}

test.each(["beat", "claim", "settle", "recover", "hand_back", "extend_lease"])(
  "what a worker lives by is given up when nobody answers for eight seconds: %s",
  async (verb) => {
    expect(await patience(verb)).toBe(8_000);
  },
);

test.each(["enqueue", "cleanup", "stats", "retry", "query_jobs"])(
  "what may wait for locks or read much is waited for: %s",
  async (verb) => {
    expect(await patience(verb)).toBeUndefined();
  },
);

test("a pool hears of no more listeners than one of each kind, however many stores of however many copies it is lent to", async () => {
  const pool = Object.assign(new EventEmitter(), {
    query: async () => ({ rows: [] }),
    connect: () => Promise.reject(new Error("it is not asked")),
    end: async () => undefined,
  });
  for (let copy = 0; copy < 3; copy += 1) {
    // As a development server does that loads a module anew while the pool stays.
    vi.resetModules();
    const { PostgresStore } = await import("./postgres-store.ts");
    for (let store = 0; store < 2; store += 1) new PostgresStore({ pool });
  }
  const counts = pool.eventNames().map((name) => [name, pool.listenerCount(name)]);
  expect(Object.fromEntries(counts)).toEqual({ error: 1, acquire: 1, connect: 1 });
});

test("a pool that lets nothing be added is taken all the same", async () => {
  const pool = Object.freeze({
    query: async () => ({ rows: [{ answer: 1 }] }),
    connect: () => Promise.reject(new Error("it is not asked")),
    on: () => undefined,
    end: async () => undefined,
  });
  const source = pgSource(pool, { preparedStatements: true, owned: false, logger: silent });
  expect(await source.run(statement("stats", "select 1"), [])).toEqual([{ answer: 1 }]);
});
