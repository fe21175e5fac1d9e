import { Queue } from "@venturi/queue";
import { inTransaction } from "@venturi-tooling/testing";
import pg from "pg";
import { type DriverKind, type Producer, savepoint } from "../driver.ts";

export const pgDriver: DriverKind = {
  name: "pg",
  connect(connectionString) {
    // Parsers that make something else of every value.
    const types = { getTypeParser: () => (value: string | Buffer) => ({ odd: value }) };
    const pool = new pg.Pool({ connectionString, types, max: 4 });
    const queue = new Queue(pool);
    return {
      producer: queue,
      outside: pool,
      producerOf: (names) => new Queue(pool, names),
      transaction: (work) =>
        inTransaction(pool, (client) => {
          const run = (sql: string) => client.query(sql);
          const within = () => queue.within(client);
          const nested = <T>(inner: (producer: Producer) => Promise<T>) =>
            savepoint(run, () => inner(within()));
          return work({ within, store: client, run, nested });
        }),
      close: () => pool.end(),
    };
  },
};
