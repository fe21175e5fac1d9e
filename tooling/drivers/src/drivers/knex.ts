import { Queue } from "@venturi/queue";
import { knex as adapt } from "@venturi/queue/adapters";
import knex from "knex";
import type { DriverKind } from "../driver.ts";

export const knexDriver = knexOf("Knex with a response that it renames", shout);
export const unwrappingKnexDriver = knexOf("Knex with a response that is rows alone", unwrap);

function knexOf(name: string, postProcessResponse: (response: unknown) => unknown): DriverKind {
  const connect: DriverKind["connect"] = (connectionString) => {
    const db = knex({
      client: "pg",
      connection: connectionString,
      pool: { min: 0, max: 4 },
      postProcessResponse,
      wrapIdentifier: (name, wrap) => wrap(name.toUpperCase()),
    });
    const queue = new Queue(adapt(db));
    return {
      producer: queue,
      outside: adapt(db),
      producerOf: (names) => new Queue(adapt(db), names),
      transaction: (work) =>
        db.transaction((trx) =>
          work({
            within: () => queue.within(adapt(trx)),
            store: adapt(trx),
            run: async (text) => trx.raw(text),
            nested: (inner) => trx.transaction((point) => inner(queue.within(adapt(point)))),
          }),
        ),
      close: () => db.destroy(),
    };
  };
  return { name, connect };
}

function unwrap(response: unknown): unknown {
  return (response as { readonly rows?: unknown }).rows ?? response;
}

/** Every column of every row in capitals. */
function shout(response: unknown): unknown {
  const { rows } = response as { readonly rows?: readonly object[] };
  if (rows === undefined) return response;
  const capitals = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toUpperCase(), value])),
  );
  return { ...(response as object), rows: capitals };
}
