import { expect, test } from "vitest";
import type { PgQuery } from "./pg-like.ts";
import { pgTransaction } from "./pg-source.ts";
import { statement } from "./sql/statement.ts";

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
