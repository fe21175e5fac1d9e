import { PostgresStore } from "@venturi/store-postgres";
import { storeContract } from "@venturi/testing";
import { inTransaction } from "@venturi-tooling/testing/transaction";
import pg from "pg";
import type { Verbs } from "./protocol.ts";

type Request = Parameters<Verbs["contract"]>[0];

/** Runs every case of the contract of stores on a store that goes through a pooler. */
export async function runContract({ url, directUrl, listens }: Request): Promise<{
  readonly passed: number;
  readonly failures: readonly string[];
}> {
  const direct = new pg.Pool({ connectionString: directUrl });
  const pooled = new pg.Pool({ connectionString: url, max: 10 });
  const clock = await stopClock(direct);
  const cases = storeContract(async () => {
    await direct.query(`truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal,
      venturi_kinds, venturi_workers restart identity`);
    const store = new PostgresStore({
      pool: pooled,
      preparedStatements: false,
      ...(listens ? { listenConnectionString: directUrl } : { listen: false }),
    });
    return {
      store,
      clock,
      transaction: (work) => inTransaction(pooled, work),
      pauseKind: async (kind) => {
        await direct.query("update venturi_kinds set paused_at = venturi_clock() where name = $1", [
          kind,
        ]);
      },
      close: () => store.close(),
    };
  });
  const failures: string[] = [];
  for (const { topic, name, run } of cases)
    await run().catch((error: unknown) => failures.push(`${topic}, ${name}: ${String(error)}`));
  await pooled.end();
  await direct.end();
  return { passed: cases.length - failures.length, failures };
}

/** Replaces the clock of a database by one that stands still until it is moved. */
async function stopClock(pool: pg.Pool): Promise<{
  advance(ms: number): Promise<number>;
  now(): Promise<number>;
}> {
  await pool.query("create table chaos_clock as select date_trunc('second', now()) as at");
  await pool.query(`create or replace function venturi_clock() returns timestamptz
    language sql stable parallel safe as 'select at from public.chaos_clock'`);
  const advance = async (ms: number) => {
    const { rows } = await pool.query(
      `update chaos_clock set at = at + make_interval(secs => $1::float8 / 1000)
      returning (extract(epoch from at) * 1000)::float8 as ms`,
      [ms],
    );
    return Number(rows[0]?.ms);
  };
  return { advance, now: () => advance(0) };
}
