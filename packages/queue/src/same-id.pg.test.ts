import { defineTask, type JobId, Merge } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { afterAll, afterEach, expect, it } from "vitest";
import { nextJobId } from "./job-ids.ts";
import { Queue } from "./queue.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));
const application_name = "same-id";
const repeatable = new pg.Pool({
  connectionString: database.url,
  application_name,
  options: "-c default_transaction_isolation=repeatable\\ read",
});
const committed = new pg.Pool({ connectionString: database.url, application_name });

afterEach(() => expectInvariants(database.pool));
afterAll(() => Promise.all([repeatable.end(), committed.end()]));

const task = (kind: string, merge: "keep" | (() => ReturnType<typeof Merge.keep>)) =>
  defineTask({ kind, payload: v.object({ key: v.string() }), dedupKey: ({ key }) => key, merge });
const Kept = task("kept", "keep");
const Decided = task("decided", () => Merge.keep());

/** Merges a job in a transaction, and commits it once the same id, enqueued through `pool`, waits for its end. */
async function besides(
  pool: pg.Pool,
  first: ReturnType<typeof Kept>,
  second: ReturnType<typeof Kept>,
): Promise<JobId> {
  const id = nextJobId();
  const client = await database.pool.connect();
  await client.query("begin");
  await new Queue(client).enqueue(first, { id });
  const repeated = new Queue(pool).enqueue(second, { id });
  repeated.catch(() => undefined);
  for (let waits = 0; waits === 0; ) {
    const { rowCount } = await database.pool.query(
      "select 1 from pg_stat_activity where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'",
      [application_name],
    );
    waits = rowCount ?? 0;
  }
  await client.query("commit");
  client.release();
  return repeated;
}

it.each([
  ["a constant", Kept],
  ["a function", Decided],
])(
  "an id that %s is just merging away comes to the same job, whatever the default isolation",
  async (_, Task) => {
    const job = Task({ key: "same" });
    const pending = await operator.enqueue(job);
    expect(await besides(repeatable, job, job)).toBe(pending);
    expect(await operator.journal(pending)).toHaveLength(1);
  },
);

it("an id that is just being merged away under another key is an id-conflict", async () => {
  const [one, other] = [Kept({ key: "one" }), Kept({ key: "other" })];
  for (const job of [one, other]) await operator.enqueue(job);
  await expect(besides(committed, one, other)).rejects.toMatchObject({ code: "id-conflict" });
});
