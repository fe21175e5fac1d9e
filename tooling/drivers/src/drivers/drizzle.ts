import { Queue } from "@venturi/queue";
import { drizzle as adapt } from "@venturi/queue/adapters";
import { sql } from "drizzle-orm";
import { drizzle as overPg } from "drizzle-orm/node-postgres";
import { drizzle as overPostgresJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import type { Driver, DriverKind } from "../driver.ts";
import { surviveLosses } from "../survive-losses.ts";

export const drizzleDriver: DriverKind = {
  name: "Drizzle over pg",
  connect(connectionString) {
    const pool = new pg.Pool({ connectionString, max: 4 });
    surviveLosses(pool);
    return connect(overPg(pool, { casing: "camelCase" }), () => pool.end());
  },
};

export const drizzlePostgresJsDriver: DriverKind = {
  name: "Drizzle over postgres.js with transforms",
  connect(url) {
    const client = postgres(url, {
      max: 4,
      onnotice: () => undefined,
      transform: postgres.pascal,
    });
    return connect(overPostgresJs(client), () => client.end({ timeout: 0.1 }));
  },
};

function connect(
  db: ReturnType<typeof overPg> | ReturnType<typeof overPostgresJs>,
  close: () => Promise<void>,
): Driver {
  const queue = new Queue(adapt(db));
  return {
    producer: queue,
    outside: adapt(db),
    producerOf: (names) => new Queue(adapt(db), names),
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          within: () => queue.within(adapt(tx)),
          store: adapt(tx),
          run: (text) => tx.execute(sql.raw(text)),
          nested: (inner) => tx.transaction((point) => inner(queue.within(adapt(point)))),
        }),
      ),
    close,
  };
}
