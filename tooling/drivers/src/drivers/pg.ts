import { Queue } from "@venturi/queue";
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
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const run = (sql: string) => client.query(sql);
          const within = () => queue.within(client);
          const nested = <T>(inner: (producer: Producer) => Promise<T>) =>
            savepoint(run, () => inner(within()));
          const result = await work({ within, store: client, run, nested });
          await client.query("commit");
          return result;
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
    };
  },
};
