import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { liveThrough } from "./testing/live-through.ts";
import { enqueue, job } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase();
expectNoWarnings();

let expected: unknown;
beforeAll(async () => {
  expected = await liveThrough(new PostgresStore({ pool }), "reference");
});
afterEach(() => expectInvariants(pool));

const pools: pg.Pool[] = [];
afterAll(() => Promise.all(pools.map((some) => some.end())));
function makePool(config: pg.PoolConfig = {}): pg.Pool {
  const made = new pg.Pool({ connectionString: url, ...config });
  made.on("error", () => undefined);
  pools.push(made);
  return made;
}

const kysely = (some: pg.Pool, camelCase = false) =>
  new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: some }),
    plugins: camelCase ? [new CamelCasePlugin()] : [],
  });

it("the reference saw what a life holds", () => {
  expect(JSON.stringify(expected)).toContain('"outcome":"stale-recovered"');
  expect(expected).toContainEqual({ verdicts: ["applied", "applied", "applied", "lost"] });
  expect(expected).toContainEqual({ verdicts: ["done"] });
  expect(expected).toContainEqual({ deleted: 2 });
});

describe("every verb does the same", () => {
  it("over a pool of one connection", async () => {
    expect(await liveThrough(new PostgresStore({ pool: makePool({ max: 1 }) }), "one")).toEqual(
      expected,
    );
  });

  it("over a pool of the store's own", async () => {
    await using store = await PostgresStore.connect({ connectionString: url, maxConnections: 1 });
    expect(await liveThrough(store, "own")).toEqual(expected);
  });

  it("without prepared statements, of which none is left on the connection", async () => {
    const one = makePool({ max: 1 });
    const names = async () => (await one.query("select name from pg_prepared_statements")).rows;
    const store = new PostgresStore({ pool: one, preparedStatements: false });
    expect(await liveThrough(store, "unprepared")).toEqual(expected);
    expect(await names()).toEqual([]);
    await liveThrough(new PostgresStore({ pool: one }), "prepared");
    const prepared = (await names()).map(({ name }) => String(name));
    expect(prepared.length).toBeGreaterThan(10);
    expect(prepared.filter((name) => !name.startsWith("venturi_"))).toEqual([]);
  });

  it("of two queues that share one connection", async () => {
    const one = makePool({ max: 1 });
    await new PostgresStore({ pool: one, prefix: "other" }).migrate();
    const lives = [{ prefix: "venturi" }, { prefix: "other" }].map((options) =>
      liveThrough(new PostgresStore({ pool: one, ...options }), "shared"),
    );
    expect(await Promise.all(lives)).toEqual([expected, expected]);
    await expectInvariants(pool, { prefix: "other" });
  });

  it.each([false, true])("over Kysely (with CamelCasePlugin: %s)", async (camelCase) => {
    const db = kysely(makePool({ max: 1 }), camelCase);
    expect(await liveThrough(new PostgresStore({ db }), `kysely ${camelCase}`)).toEqual(expected);
    await expect(
      new PostgresStore({ db }).listen({ onWake: () => undefined }).listening,
    ).resolves.toBeUndefined();
  });

  it.each(["serializable", "repeatable read"])("where %s is the default", async (level) => {
    const options = `-c default_transaction_isolation=${level.replace(" ", "\\ ")}`;
    const strict = makePool({ max: 1, options });
    expect(await liveThrough(new PostgresStore({ pool: strict }), `pg ${level}`)).toEqual(expected);
    const db = kysely(strict, true);
    expect(await liveThrough(new PostgresStore({ db }), `kysely ${level}`)).toEqual(expected);
  });

  describe("whatever parsers the application has set", () => {
    const { builtins } = pg.types;
    const types = [
      builtins.INT8,
      builtins.TIMESTAMPTZ,
      builtins.TIMESTAMP,
      builtins.JSON,
      builtins.JSONB,
      builtins.NUMERIC,
      builtins.BOOL,
      builtins.UUID,
    ];
    const parsers = types.map((type) => pg.types.getTypeParser(type, "text"));
    const set = (parser: (index: number) => (value: string) => unknown) => {
      for (const [index, type] of types.entries()) pg.types.setTypeParser(type, parser(index));
    };
    beforeAll(() => set(() => () => new Map([["changed", true]])));
    afterAll(() => set((index) => parsers[index] as (value: string) => unknown));

    it("globally", async () => {
      const made = makePool();
      expect(await made.query("select 1::int8 as n")).toMatchObject({
        rows: [{ n: new Map([["changed", true]]) }],
      });
      expect(await liveThrough(new PostgresStore({ pool: made }), "global pg")).toEqual(expected);
      const db = kysely(made);
      expect(await liveThrough(new PostgresStore({ db }), "global kysely")).toEqual(expected);
    });

    it("even for text and numbers, of its pool", async () => {
      const made = makePool({ types: { getTypeParser: () => () => "changed" } });
      expect(await liveThrough(new PostgresStore({ pool: made }), "types")).toEqual(expected);
    });
  });
});

describe("a borrowed pool", () => {
  it("is never ended, and can be used on", async () => {
    const lent = makePool();
    const store = new PostgresStore({ pool: lent });
    await enqueue(store, job("k"));
    await store.close();
    expect(lent.ended).toBe(false);
    expect((await lent.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  it("gets one listener however many stores it is lent to", () => {
    const lent = makePool();
    for (let i = 0; i < 20; i += 1) new PostgresStore({ pool: lent, prefix: `p${i}` });
    // The test's own, and one of the stores.
    expect(lent.listenerCount("error")).toBe(2);
  });

  it("of one connection suffices for all at once, with a listener running", async () => {
    const lent = makePool({ max: 1, connectionTimeoutMillis: 20_000 });
    const store = new PostgresStore({ pool: lent });
    let woken = 0;
    const subscription = store.listen({ onWake: () => (woken += 1) });
    await subscription.listening;
    const kinds = Array.from({ length: 5 }, (_, n) => `busy ${n}`);
    expect(await Promise.all(kinds.map((kind) => liveThrough(store, kind)))).toEqual(
      kinds.map(() => expected),
    );
    await until(() => woken > 1);
    await store.close();
  });

  it("lends its clients no listeners that stay", async () => {
    const lent = makePool({ max: 1, options: "-c default_transaction_isolation=serializable" });
    const store = new PostgresStore({ pool: lent });
    const counts = async () => {
      const client = await lent.connect();
      const names = ["error", "end", "notification", "drain", "notice"];
      const all = names.map((name) => client.listenerCount(name));
      client.release();
      return all;
    };
    const before = await counts();
    for (let i = 0; i < 100; i += 1) await store.findJob({ id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    expect(await counts()).toEqual(before);
  });

  it("made of parts, its password hidden, can be listened on", async () => {
    const { hostname, port, username, password, pathname } = new URL(url);
    const lent = makePool({
      connectionString: undefined,
      host: hostname,
      port: Number(port),
      user: username,
      password,
      database: pathname.slice(1),
    });
    const store = new PostgresStore({ pool: lent });
    let woken = 0;
    store.listen({ onWake: () => (woken += 1) });
    await until(() => woken > 0, 3_000);
    await store.close();
  });
});
