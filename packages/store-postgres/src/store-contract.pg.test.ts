import { type ContractSubject, storeContract } from "@venturi/testing";
import { expectInvariants, inTransaction, testDatabase } from "@venturi-tooling/testing";
import { afterEach, describe, expect, it } from "vitest";
import type { PostgresTransaction } from "./connections.ts";
import { PostgresStore } from "./postgres-store.ts";
import { emptyTables } from "./testing/empty-tables.ts";
import { stopSqlClock } from "./testing/sql-clock.ts";

const { pool } = await testDatabase();
const clock = await stopSqlClock(pool);

afterEach(() => expectInvariants(pool));

async function makeStore(): Promise<ContractSubject<PostgresTransaction>> {
  await emptyTables(pool);
  const store = new PostgresStore({ pool });
  return {
    store,
    clock,
    transaction: (work) => inTransaction(pool, work),
    pauseKind: async (kind) => {
      await pool.query("update venturi_kinds set paused_at = venturi_clock() where name = $1", [
        kind,
      ]);
    },
    close: () => store.close(),
  };
}

const cases = storeContract(makeStore);

for (const topic of new Set(cases.map((each) => each.topic))) {
  describe(`the PostgreSQL store, ${topic}`, () => {
    for (const { name, run } of cases.filter((each) => each.topic === topic))
      it(name, async () => expect(await run()).toBeNull());
  });
}
