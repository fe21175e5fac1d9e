import pg from "pg";
import { LimitLoop } from "./limit-loop.ts";
import { enqueueSql, schema } from "./limit-sql.ts";
import type { Payload, Producer, System, Variant } from "./system.ts";

function prefetch(variant: Variant, concurrency: number): number {
  return variant === "best" ? 1_000 : concurrency;
}

async function prepare(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(schema);
  await client.end();
}

async function produce(url: string): Promise<Producer> {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  const insert = (client: pg.Pool | pg.ClientBase, payloads: readonly Payload[]) =>
    client.query({
      name: "enqueue",
      text: enqueueSql,
      values: [payloads.map((payload) => JSON.stringify(payload))],
    });
  return {
    add: (payload: Payload) => insert(pool, [payload]),
    addMany: (payloads: readonly Payload[]) => insert(pool, payloads),
    addWithin: (client: pg.ClientBase, payload: Payload) => insert(client, [payload]),
    close: () => pool.end(),
  };
}

/** The same work as bare SQL, with nothing around it: how fast a queue on this layout could be. */
export const limit: System = {
  prepare,
  produce,
  work: async ({ url, variant, concurrency, handle }) => {
    const loop = new LimitLoop({
      url,
      concurrency,
      prefetch: prefetch(variant, concurrency),
      handle,
    });
    await loop.start();
    return { stop: () => loop.stop(), close: () => Promise.resolve() };
  },
  settings: (variant, concurrency) => ({ concurrency, prefetch: prefetch(variant, concurrency) }),
};
