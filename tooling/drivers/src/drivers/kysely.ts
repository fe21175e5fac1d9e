import { Queue } from "@venturi/queue";
import { CamelCasePlugin, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { type DriverKind, type Producer, savepoint } from "../driver.ts";
import { surviveLosses } from "../survive-losses.ts";

export const kyselyDriver: DriverKind = {
  name: "Kysely with a plugin that renames",
  connect(connectionString) {
    const pool = new pg.Pool({ connectionString, max: 4 });
    surviveLosses(pool);
    const db = new Kysely<Record<string, never>>({
      dialect: new PostgresDialect({ pool }),
      plugins: [new CamelCasePlugin({ upperCase: true })],
    });
    const queue = new Queue(db);
    return {
      producer: queue,
      outside: db,
      producerOf: (names) => new Queue(db, names),
      transaction: (work) =>
        db.transaction().execute((trx) => {
          const within = () => queue.within(trx);
          const run = (text: string) => sql.raw(text).execute(trx);
          const nested = <T>(inner: (producer: Producer) => Promise<T>) =>
            savepoint(run, () => inner(within()));
          return work({ within, store: trx, run, nested });
        }),
      close: () => db.destroy(),
    };
  },
};
