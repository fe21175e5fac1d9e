import { Queue } from "@venturi/queue";
import { postgresJs } from "@venturi/queue/adapters";
import postgres from "postgres";
import type { Driver, DriverKind, Producer } from "../driver.ts";

export const postgresJsDriver: DriverKind = {
  name: "postgres.js with transforms and types",
  connect: (url) =>
    connect(
      postgres(url, {
        max: 4,
        onnotice: () => undefined,
        // Ord, Id, Outcome; and a text that is no text.
        transform: postgres.pascal,
        types: {
          shout: { to: 25, from: [25, 23], serialize: String, parse: (text: string) => `${text}!` },
        },
      }),
    ),
};

export const unpreparedPostgresJsDriver: DriverKind = {
  name: "postgres.js without prepared statements",
  connect: (url) => connect(postgres(url, { max: 4, prepare: false, onnotice: () => undefined })),
};

function connect<Types extends Record<string, unknown>>(sql: postgres.Sql<Types>): Driver {
  const queue = new Queue(postgresJs(sql));
  return {
    producer: queue,
    outside: postgresJs(sql),
    producerOf: (names) => new Queue(postgresJs(sql), names),
    // postgres.js names the type of the result after a list of statements that it might be.
    transaction: <T>(work: Parameters<Driver["transaction"]>[0]) =>
      sql.begin((tx) =>
        work({
          within: () => queue.within(postgresJs(tx)),
          store: postgresJs(tx),
          run: (text) => tx.unsafe(text),
          nested: <R>(inner: (producer: Producer) => Promise<R>) =>
            tx.savepoint((point) => inner(queue.within(postgresJs(point)))) as Promise<R>,
        }),
      ) as Promise<T>,
    // After a lost connection it would wait for ever.
    close: () => sql.end({ timeout: 0.1 }),
  };
}
