import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count, SendEmail } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));

const client = new pg.Client({ connectionString: database.url });
await client.connect();
const pooled = await database.pool.connect();
const kysely = new Kysely<Record<string, never>>({
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: database.url }) }),
  plugins: [new CamelCasePlugin()],
});
/** Parsers that make something else of every number and text. */
const odd = new pg.Pool({
  connectionString: database.url,
  types: { getTypeParser: () => (value: string | Buffer) => ({ odd: value }) },
});

afterAll(async () => {
  pooled.release();
  await Promise.all([client.end(), kysely.destroy(), odd.end()]);
});

const queues = {
  "a pg Pool": () => new Queue(database.pool),
  "a pg Pool without prepared statements": () =>
    new Queue(database.pool, { preparedStatements: false }),
  "a pg Pool with type parsers of its own": () => new Queue(odd),
  "a pg Client": () => new Queue(client),
  "a pg PoolClient": () => new Queue(pooled),
  "a Kysely instance with plugins": () => new Queue(kysely),
  "an executor of one's own": () =>
    new Queue({ query: (text, params) => database.pool.query(text, params) }),
  "a store": () => new Queue(new PostgresStore({ pool: database.pool })),
};

describe.each(Object.entries(queues))("a queue over %s", (_, makeQueue) => {
  it("stores a job that is due at once", async () => {
    const id = await makeQueue().enqueue(Count({ n: 7 }));
    expect(await operator.job(id)).toMatchObject({
      id,
      kind: "count",
      status: "pending",
      priority: "normal",
      payload: { n: 7 },
      dedupKey: null,
    });
  });

  it("stores many in the order given, each under the id that it returns", async () => {
    const jobs = [3, 1, 2].map((n) => Count({ n }));
    const ids = await makeQueue().enqueueMany(jobs);
    expect([...ids].sort()).toEqual(ids);
    const payloads = await Promise.all(ids.map(async (id) => (await operator.job(id))?.payload));
    expect(payloads).toEqual([{ n: 3 }, { n: 1 }, { n: 2 }]);
  });
});

describe("a queue over a Kysely transaction", () => {
  it("enqueues with its commit", async () => {
    const id = await kysely.transaction().execute(async (trx) => {
      const inner = await new Queue(trx).enqueue(Count({ n: 1 }));
      expect(await operator.job(inner)).toBeNull();
      return inner;
    });
    expect(await operator.job(id)).toMatchObject({ status: "pending" });
  });
});

describe("over a pg client whose owner has begun a transaction", () => {
  it("an error is the caller's, and what was stored is rolled back with the transaction", async () => {
    const queue = new Queue(client);
    await client.query("begin");
    const id = await queue.enqueue(Count({ n: 1 }));
    await expect(queue.enqueue(Count({ n: 2 }), { id })).resolves.toBe(id);
    await client.query("rollback");
    expect(await operator.job(id)).toBeNull();
  });

  it("a call that is refused says why, and spoils none that was made before it", async () => {
    const queue = new Queue(client);
    await client.query("begin");
    const id = await queue.enqueue(Count({ n: 1 }));
    const [stored, refused] = await Promise.allSettled([
      queue.enqueue(Count({ n: 2 })),
      queue.enqueue(SendEmail({ to: "a@example.com" }), { id }),
    ]);
    await client.query("rollback");
    expect(stored).toMatchObject({ status: "fulfilled" });
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "id-conflict", id } });
  });
});

it("prefix and schema choose the tables", async () => {
  await database.pool.query('create schema "Other ""Schema"');
  const names = { prefix: "jobs_v2", schema: 'Other "Schema' };
  await new PostgresStore({ pool: database.pool, ...names }).migrate();
  const id = await new Queue(database.pool, names).enqueue(Count({ n: 1 }));
  expect(await operator.job(id)).toBeNull();
  const other = new Queue(new PostgresStore({ pool: database.pool, ...names }));
  expect(await other.job(id)).toMatchObject({ kind: "count" });
});

it("one pool of one connection serves queues of several schemas", async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  const queues = [new Queue(pool), new Queue(pool, { prefix: "jobs_v2", schema: 'Other "Schema' })];
  for (const queue of [...queues, ...queues]) await queue.enqueue(Count({ n: 1 }));
  await pool.end();
});

it("statements are prepared under a name, unless preparedStatements is false", async () => {
  const fresh = new pg.Client({ connectionString: database.url });
  await fresh.connect();
  const prepared = async () => (await fresh.query("select name from pg_prepared_statements")).rows;
  await new Queue(fresh, { preparedStatements: false }).enqueue(Count({ n: 1 }));
  expect(await prepared()).toEqual([]);
  await new Queue(fresh).enqueue(Count({ n: 1 }));
  expect(await prepared()).toHaveLength(1);
  await fresh.end();
});
