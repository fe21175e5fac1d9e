import { inspect } from "node:util";
import { isVenturiError } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { job, newId } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase();

/** Of this file alone: others share the server. */
const altering = `altered ${new URL(url).pathname.slice(1)}`;

/** The connection string with another part, and a name by which its connections are told apart. */
function altered(
  changes: Partial<Pick<URL, "port" | "hostname" | "password" | "pathname" | "username">>,
): string {
  const changed = Object.assign(new URL(url), changes);
  changed.searchParams.set("application_name", altering);
  return changed.href;
}

const connections = async (name: string) =>
  (await pool.query("select from pg_stat_activity where application_name = $1", [name])).rows
    .length;

/** As a proxy whose target has gone. */
const unreadable: never = new Proxy({} as never, {
  get: () => {
    throw new Error("gone");
  },
});

describe("connect", () => {
  it("opens a pool of the store's own, which close ends", async () => {
    const store = await PostgresStore.connect({ connectionString: altered({}), maxConnections: 3 });
    await Promise.all(Array.from({ length: 30 }, () => store.enqueue({ jobs: [job("k")] })));
    expect(await connections(altering)).toBe(3);
    await store.close();
    await until(async () => (await connections(altering)) === 0);
  });

  it("closes at the end of its scope", async () => {
    {
      await using store = await PostgresStore.connect({ connectionString: altered({}) });
      await store.listen({ onWake: () => undefined }).listening;
      expect(await connections(altering)).toBe(2);
    }
    await until(async () => (await connections(altering)) === 0);
  });

  const wrong: [string, () => string, { sqlState?: string; isRetryable: boolean }, string][] = [
    [
      "a port where nobody listens",
      () => altered({ port: "1" }),
      { isRetryable: true },
      "look whether PostgreSQL runs",
    ],
    [
      "a host that does not exist",
      () => altered({ hostname: "absent.invalid" }),
      { isRetryable: true },
      "host and port of connectionString",
    ],
    [
      "a wrong password",
      () => altered({ password: "s3cret-guess" }),
      { sqlState: "28P01", isRetryable: false },
      "the password of connectionString",
    ],
    [
      "a user that does not exist",
      () => altered({ username: "nobody_here" }),
      { sqlState: "28P01", isRetryable: false },
      "look at the user",
    ],
    [
      "a database that does not exist",
      () => altered({ pathname: "/absent" }),
      { sqlState: "3D000", isRetryable: false },
      "create that database",
    ],
  ];

  it.each(wrong)(
    "with %s is a database error that says what to look at, without the password, and leaves nothing behind",
    async (_, makeUrl, expected, advice) => {
      const connectionString = makeUrl();
      const error = await failureOf(PostgresStore.connect({ connectionString }));
      expect(error).toMatchObject({ code: "database", ...expected });
      expect(error.message).toContain("connect to the database");
      expect(error.message).toContain(advice);
      expectNoSecret(error, new URL(connectionString).password);
      await until(async () => (await connections(altering)) === 0);
    },
  );

  it.each([
    "postgres://ann:s3cret@host:70000/db",
    "postgres://ann:s3cret@host:port/db",
    "postgres://ann:s3c/ret@host/db",
  ])(
    "with an unreadable string (%#) is invalid-argument without the password",
    async (connectionString) => {
      const error = await failureOf(PostgresStore.connect({ connectionString }));
      expect(error).toMatchObject({ code: "invalid-argument", argument: "connectionString" });
      expectNoSecret(error, "s3cret");
      const listen = () => new PostgresStore({ pool, listenConnectionString: connectionString });
      expect(listen).toThrow(expect.objectContaining({ argument: "listenConnectionString" }));
    },
  );

  it("to a server that hangs up at once leaves no socket behind", async () => {
    const proxy = await TcpProxy.before(url);
    proxy.mode = "refuse";
    const error = await failureOf(PostgresStore.connect({ connectionString: proxy.url }));
    expect(error).toMatchObject({ code: "database", isRetryable: true });
    expect(proxy.accepted).toBe(1);
    expect(proxy.open).toBe(0);
    await proxy.close();
  });

  // Beside each other: the sockets of both are there until the ten seconds of a connection are over.
  it.concurrent("ends with its signal, at once, also while the server does not answer", async () => {
    const proxy = await TcpProxy.before(url);
    proxy.mode = "swallow";
    const aborting = new AbortController();
    const connecting = PostgresStore.connect({
      connectionString: proxy.url,
      signal: aborting.signal,
    });
    await until(() => proxy.open === 1);
    aborting.abort();
    await expect(connecting).rejects.toBe(aborting.signal.reason);
    const { signal } = aborting;
    await expect(PostgresStore.connect({ connectionString: proxy.url, signal })).rejects.toBe(
      signal.reason,
    );
    expect(proxy.accepted).toBe(1);
    // The attempt itself is not called off: it ends by its own ten seconds.
    await until(() => proxy.open === 0, 15_000);
    await proxy.close();
  });

  it.concurrent("to a server that never answers gives up", async () => {
    const proxy = await TcpProxy.before(url);
    proxy.mode = "swallow";
    const error = await failureOf(PostgresStore.connect({ connectionString: proxy.url }));
    expect(error).toMatchObject({ code: "database", isRetryable: true });
    await until(() => proxy.open === 0);
    await proxy.close();
  });
});

function expectNoSecret(error: Error, secret: string): void {
  expect(secret).not.toBe("");
  for (const shown of [
    error.message,
    JSON.stringify(error),
    String(error.stack),
    inspect(error, { depth: 10 }),
  ])
    expect(shown).not.toContain(secret);
}

describe("close", () => {
  it("may be called twice, also at the same time", async () => {
    const store = await PostgresStore.connect({ connectionString: url });
    await Promise.all([store.close(), store.close()]);
    await store.close();
    await store[Symbol.asyncDispose]();
  });

  it("lets what is under way come to its end", async () => {
    const store = await PostgresStore.connect({ connectionString: url });
    const id = newId();
    const enqueueing = store.enqueue({ jobs: [job("k", { id })] });
    await new Promise((resolve) => setImmediate(resolve));
    await store.close();
    await expect(enqueueing).resolves.toMatchObject({ jobs: [{ id }] });
  });

  it.each(["own", "borrowed"])(
    "makes every later call fail with closed (%s pool)",
    async (kind) => {
      const store =
        kind === "own"
          ? await PostgresStore.connect({ connectionString: url })
          : new PostgresStore({ pool });
      await store.close();
      const calls = [
        () => store.enqueue({ jobs: [job("k")] }),
        () => store.findJob({ id: newId() }),
        () => store.migrate(),
        () => store.configure({ notify: true }),
        async () => store.listen({ onWake: () => undefined }),
      ];
      for (const call of calls)
        expect(await failureOf(call())).toMatchObject({ code: "closed", isRetryable: false });
    },
  );
});

describe("options that are refused, by name", () => {
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  const client = new pg.Client({ connectionString: url });
  const made = (options: object) => () => new PostgresStore(options as { pool: pg.Pool });

  it.each<[string, object]>([
    ["perfix", { pool, perfix: "a" }],
    ["connectionString", { pool, connectionString: url }],
    ["prefix", { pool, prefix: "A" }],
    ["schema", { pool, schema: "" }],
    ["schema", { pool, schema: 7 }],
    ["preparedStatements", { pool, preparedStatements: "no" }],
    ["listen", { pool, listen: 0 }],
    ["listenConnectionString", { pool, listenConnectionString: "" }],
    ["pool", {}],
    ["pool", { pool: undefined }],
    ["pool", { pool: null }],
    ["pool", { pool: url }],
    ["pool", { pool: {} }],
    ["pool", { pool: db }],
    ["pool", { pool: client }],
    ["pool", { pool: new pg.Pool({ connectionString: url, binary: true } as pg.PoolConfig) }],
    ["db", { db: pool }],
    ["options", pool],
    ["options", client],
    ["options", db],
    ["pool", { pool, db }],
    ["pool", { pool: unreadable }],
    ["db", { db: unreadable }],
  ])("%s: %#", (argument, options) => {
    expect(made(options)).toThrow(expect.objectContaining({ code: "invalid-argument", argument }));
  });

  it.each<[string, object | null]>([
    ["options", null],
    ["connectionString", {}],
    ["connectionString", { connectionString: "" }],
    ["connectionString", { connectionString: 5 }],
    ["maxConnections", { connectionString: url, maxConnections: 0 }],
    ["maxConnections", { connectionString: url, maxConnections: 1.5 }],
    ["maxConnections", { connectionString: url, maxConnections: "5" }],
    ["max", { connectionString: url, max: 5 }],
    ["signal", { connectionString: url, signal: 5 }],
    ["options", url as unknown as object],
    ["pool", { connectionString: url, pool }],
  ])("%s of connect: %#", async (argument, options) => {
    const error = await failureOf(PostgresStore.connect(options as { connectionString: string }));
    expect(error).toMatchObject({ code: "invalid-argument", argument });
  });

  it("all with an error that says what to do, and no statement sent", async () => {
    try {
      made({ pool, perfix: "a" })();
      expect.unreachable();
    } catch (error) {
      if (!isVenturiError(error)) throw error;
      expect(error.message).toContain("prefix, schema");
    }
  });
});

describe("calls refuse what they do not know", () => {
  const store = new PostgresStore({ pool });
  const { signal } = new AbortController();

  it.each<[string, () => Promise<unknown>]>([
    ["sginal", () => store.migrate({ sginal: signal } as object)],
    ["signal", () => store.migrate({ signal: 1 } as object)],
    ["silent", () => store.configure({ notify: true, silent: true } as { notify: boolean })],
    ["sginal", () => store.configure({ notify: true }, { sginal: signal } as object)],
    ["notify", () => store.configure(undefined as never)],
    ["notify", () => store.configure({} as never)],
    ["settings", () => store.configure(unreadable)],
    ["tx", async () => store.within(unreadable)],
    ["tx", () => store.complete(unreadable, { worker: 1, jobId: "", runCount: 1 } as never)],
  ])("%s: %#", async (argument, call) => {
    expect(await failureOf(call())).toMatchObject({ code: "invalid-argument", argument });
  });

  it("and those whose signal has aborted change nothing", async () => {
    const aborted = AbortSignal.abort();
    await expect(store.configure({ notify: false }, { signal: aborted })).rejects.toBe(
      aborted.reason,
    );
    const { rows } = await pool.query("select notify from venturi_meta");
    expect(rows).toEqual([{ notify: true }]);
  });
});

describe("within", () => {
  const store = new PostgresStore({ pool });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });

  const outside = { query: () => Promise.resolve({ rows: [] }), isTransaction: false };
  it.each([
    ["a pool", pool, /is a pool, .*pass the client/],
    ["a Kysely instance", db, /is a Kysely instance outside of its transactions: pass the trx/],
    ["what an adapter made of a database", outside, /is outside of a transaction: adapt/],
    ["nothing", undefined, /is not a transaction of this store/],
    ["an object", {}, /is not a transaction of this store/],
  ])("%s is no transaction, and the error says what it is", (_, tx, message) => {
    expect(() => store.within(tx as never)).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        argument: "tx",
        message: expect.stringMatching(message),
      }),
    );
  });

  it("a client is, and so is a Kysely transaction: both are left to their owner to end", async () => {
    const ids = [newId(), newId()];
    const client = await pool.connect();
    await client.query("begin");
    await store.within(client).enqueue({ jobs: [job("k", { id: ids[0] as string })] });
    await client.query("rollback");
    client.release();
    await db
      .transaction()
      .execute((trx) => store.within(trx).enqueue({ jobs: [job("k", { id: ids[1] as string })] }));
    const found = await Promise.all(ids.map((id) => store.findJob({ id })));
    expect(found.map((result) => result.job !== null)).toEqual([false, true]);
  });
});

describe("what is neither a pool nor a Kysely instance", () => {
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  const client = new pg.Client({ connectionString: url });

  it.each([
    ["nothing", {}, "pool", /pool or db must be given/],
    ["both", { pool, db }, "pool", /pool and db are both given/],
    ["another object as pool", { pool: {} }, "pool", /not a pg pool \(got an object\)/],
    ["null as pool", { pool: null }, "pool", /not a pg pool \(got null\)/],
    ["a text as pool", { pool: "postgres://u:secret@h/d" }, "pool", /got a string/],
    ["a client as pool", { pool: client }, "pool", /is a pg client/],
    ["a Kysely instance as pool", { pool: db }, "pool", /pass it as \{ db \}/],
    ["another object as db", { db: {} }, "db", /not a Kysely instance \(got an object\)/],
    ["a pool as db", { db: pool }, "db", /pass it as \{ pool \}/],
  ])("%s is refused in words of its own", (_, options, argument, message) => {
    expect(() => new PostgresStore(options as never)).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        argument,
        message: expect.stringMatching(message),
      }),
    );
  });
});
