import pg from "pg";
import type { Payload, System } from "./system.ts";

const insertSql = `with t as (insert into bench_floor (payload) values ($1::jsonb))
  select pg_notify('bench_floor', '')`;
const claimSql = `update bench_floor set claimed_at = now() where id = any (array(
    select id from bench_floor where claimed_at is null order by id limit 24 for update skip locked))
  returning payload`;

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

/** The least that a wake-up takes: one insert with NOTIFY, one LISTEN, one claim. Nothing is settled. */
export const floor: System = {
  prepare: async (url) => {
    const client = await connected(url);
    await client.query(
      `create table bench_floor (id bigint generated always as identity, payload jsonb not null, claimed_at timestamptz)
         with (fillfactor = 40);
       create index on bench_floor (id) where claimed_at is null;`,
    );
    await client.end();
  },
  produce: async (url) => {
    const pool = new pg.Pool({ connectionString: url, max: 16 });
    const add = (payload: Payload) =>
      pool.query({ name: "insert", text: insertSql, values: [JSON.stringify(payload)] });
    return {
      add,
      addMany: async (payloads) => {
        for (const payload of payloads) await add(payload);
      },
      close: () => pool.end(),
    };
  },
  work: async ({ url, handle }) => {
    const claims = await connected(url);
    const listener = await connected(url);
    let isClaiming = false;
    let wasWoken = false;
    const claim = async () => {
      wasWoken = true;
      if (isClaiming) return;
      isClaiming = true;
      while (wasWoken) {
        wasWoken = false;
        const { rows } = await claims.query<{ payload: Payload }>({
          name: "claim",
          text: claimSql,
        });
        if (rows.length === 24) wasWoken = true;
        for (const row of rows) void handle(row.payload.id);
      }
      isClaiming = false;
    };
    listener.on("notification", () => void claim());
    await listener.query("listen bench_floor");
    await claim();
    return {
      stop: async () => {
        await listener.end();
        await claims.end();
      },
      close: () => Promise.resolve(),
    };
  },
  settings: () => ({}),
};
