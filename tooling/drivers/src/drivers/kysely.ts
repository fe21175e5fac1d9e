import { Queue } from "@venturi/queue";
import { CamelCasePlugin, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import type { DriverKind } from "../driver.ts";
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
      producerOf: (prefix) => new Queue(db, { prefix }),
      transaction: (work) =>
        db.transaction().execute((trx) =>
          work({
            within: () => queue.within(trx),
            store: trx,
            run: (text) => sql.raw(text).execute(trx),
          }),
        ),
      close: () => db.destroy(),
    };
  },
};
