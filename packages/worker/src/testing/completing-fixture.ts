import type { JobContext, JobId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore, type PostgresTransaction } from "@venturi/store-postgres";
import {
  expectInvariants,
  expectNoWarnings,
  inTransaction,
  testDatabase,
} from "@venturi-tooling/testing";
import type pg from "pg";
import { afterAll, afterEach } from "vitest";

type Context = JobContext<unknown, PostgresTransaction>;

/** A database with a table that handlers write to, and how they do. */
export async function completingFixture() {
  const { url, pool } = await testDatabase();
  const store = await PostgresStore.connect({ connectionString: url });
  const queue = new Queue(store);
  await pool.query("create table written (job_id text not null, run integer not null)");
  expectNoWarnings();
  afterAll(() => store.close());
  afterEach(() => expectInvariants(pool));

  return {
    pool,
    store,
    queue,
    inTransaction: <T>(work: (client: pg.PoolClient) => Promise<T>) => inTransaction(pool, work),
    /** Outcomes and notes in the journal of a job. */
    entries: async (id: JobId) =>
      (await queue.journal(id)).map(({ outcome, note }) => [outcome, note]),
    /** How many rows the runs of a job have written. */
    rowsOf: async (id: JobId): Promise<number> =>
      (await pool.query("select from written where job_id = $1", [id])).rows.length,
    async write(client: pg.PoolClient, { id, runCount }: Pick<Context, "id" | "runCount">) {
      await client.query("insert into written values ($1, $2)", [id, runCount]);
    },
  };
}
