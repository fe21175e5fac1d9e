import { Queue, type SqlExecutor } from "@venturi/queue";
import { inTransaction } from "@venturi-tooling/testing";
import pg from "pg";
import { type DriverKind, type Producer, savepoint } from "../driver.ts";
import { surviveLosses } from "../survive-losses.ts";

/** A library of which no adapter exists and whose `query` resolves to the rows, as it does in TypeORM and pg-promise. */
export const rowsAloneDriver: DriverKind = {
  name: "a library that answers with rows alone",
  connect(connectionString) {
    const pool = new pg.Pool({ connectionString, max: 4 });
    surviveLosses(pool);
    const outside = answeringRows(pool, false);
    const queue = new Queue(outside);
    return {
      producer: queue,
      outside,
      producerOf: (names) => new Queue(outside, names),
      transaction: (work) =>
        inTransaction(pool, (client) => {
          const run = (sql: string) => client.query(sql);
          const inside = answeringRows(client, true);
          const within = () => queue.within(inside);
          const nested = <T>(inner: (producer: Producer) => Promise<T>) =>
            savepoint(run, () => inner(within()));
          return work({ within, store: inside, run, nested });
        }),
      close: () => pool.end(),
    };
  },
};

/** Such libraries say nothing of what comes, in types as well. */
function answeringRows(on: pg.Pool | pg.PoolClient, isTransaction: boolean) {
  return {
    isTransaction,
    query: async (text, params) => (await on.query(text, params)).rows as never,
  } satisfies SqlExecutor;
}
