import { describe, expect, it } from "vitest";
import { Queue } from "../queue.ts";
import { Count } from "../testing/tasks.ts";
import { drizzle } from "./drizzle.ts";
import { knex } from "./knex.ts";
import { postgresJs } from "./postgres-js.ts";
import { prisma } from "./prisma.ts";

/** What the enqueue function answers, as a driver that was told nothing about types would return it. */
const stored = {
  jobs: "1",
  others: '[[1, "01563e3a-b5d3-d676-4c61-efb99302bd5b", "repeated"]]',
};
const uuid = "01563e3a-b5d3-d676-4c61-efb99302bd5b";
const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const never = () => expect.fail("it was called");

const adapters = { postgresJs, drizzle, prisma, knex } as const;

describe.each(Object.entries(adapters))("%s", (_, adapt) => {
  it.each([undefined, null, {}, "postgres://", { query: never }, () => undefined])(
    "refuses %j, saying what to pass",
    (value) => {
      expect(() => adapt(value as never)).toThrow(
        expect.objectContaining({
          code: "invalid-argument",
          message: expect.stringMatching(/pass /),
        }),
      );
    },
  );
});

const outside = {
  postgresJs: postgresJs(Object.assign(() => undefined, { unsafe: never, begin: never })),
  drizzle: drizzle({ execute: never, select: never } as never),
  prisma: prisma({ $queryRawUnsafe: never, $connect: never } as never),
  knex: knex(Object.assign(() => undefined, { raw: never })),
};

describe.each(Object.entries(outside))("what %s makes of a connection", (_, executor) => {
  it("is no transaction", () => {
    expect(executor).toMatchObject({ isTransaction: false, isPool: true });
    expect(() => new Queue(executor).within(executor)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "tx" }),
    );
  });
});

/** An error whose members throw when they are read, except where promises look. */
const hostile = new Proxy(new Error("unread"), {
  get: (_, name) => {
    if (name !== "then") throw new TypeError("boo");
  },
});
const failing = () => Promise.reject(hostile);

it.each([
  ["drizzle", drizzle({ execute: failing, select: never } as never)],
  ["prisma", prisma({ $queryRawUnsafe: failing } as never)],
  ["knex", knex(Object.assign(() => undefined, { raw: () => ({ options: failing }) }))],
])("%s hands on what cannot be read", async (_, executor) => {
  const thrown = await executor.query("select 1", []).catch((error: unknown) => error);
  expect(thrown === hostile).toBe(true);
});

describe("drizzle", () => {
  it("over one connection of pg takes one statement after the other", () => {
    const $client = { query: never, connect: never };
    expect(drizzle({ execute: never, select: never, $client } as never).isPool).toBe(false);
  });

  it.each([[[stored]], [{ rows: [stored] }]])("reads %j", async (result) => {
    const db = { select: never, execute: async () => result };
    expect(await new Queue(drizzle(db)).enqueue(Count({ n: 1 }))).toBe(id);
  });

  it("throws what the driver threw, not what repeats the payload", async () => {
    const cause = Object.assign(new Error("no"), { code: "42501", severity: "ERROR" });
    const thrown = Object.assign(new Error("Failed query: … params: secret"), {
      query: "…",
      params: ["secret"],
      cause,
    });
    const db = { select: never, execute: () => Promise.reject(thrown) };
    await expect(new Queue(drizzle(db)).enqueue(Count({ n: 1 }))).rejects.toMatchObject({
      code: "database",
      sqlState: "42501",
      cause,
      message: "could not enqueue a job: no",
    });
  });
});

describe("prisma", () => {
  const failing = (error: unknown) =>
    new Queue(prisma({ $queryRawUnsafe: () => Promise.reject(error) } as never));
  const known = (code: string, meta: object, message = "Invalid call") =>
    Object.assign(new Error(message), { code, meta });

  it.each([
    [
      "a server's error",
      known("P2010", {
        driverAdapterError: {
          cause: {
            kind: "postgres",
            originalCode: "VT001",
            originalMessage: "taken",
            detail: uuid,
          },
        },
      }),
      { code: "id-conflict", sqlState: "VT001", id },
    ],
    [
      "a server's error, before there were driver adapters",
      known("P2010", { code: "VT001", message: `ERROR: taken\nDETAIL: ${uuid}` }),
      { code: "id-conflict", sqlState: "VT001", id },
    ],
    [
      "a server that is not there",
      known(
        "P2010",
        { driverAdapterError: { cause: { kind: "DatabaseNotReachable" } } },
        "Message: `not there`",
      ),
      { code: "database", isRetryable: true, message: "could not enqueue a job: not there" },
    ],
    [
      "a connection that was lost",
      known("P1017", {}),
      { code: "enqueue-unknown", isRetryable: true },
    ],
    ["no connection in time", known("P2024", {}), { code: "database", isRetryable: true }],
    [
      "a transaction that has ended",
      known("P2028", {}),
      { code: "database", isRetryable: false, message: "could not enqueue a job: Invalid call" },
    ],
    [
      "something else",
      new TypeError("x is not a function"),
      { code: "database", isRetryable: false },
    ],
  ])("tells %s", async (_, error, expected) => {
    const failure = failing(error).enqueue(Count({ n: 1 }));
    await expect(failure).rejects.toMatchObject(expected);
    if (!("sqlState" in expected)) await expect(failure).rejects.not.toHaveProperty("sqlState");
  });
});

describe("knex", () => {
  const sent: { sql?: string; options?: Readonly<Record<string, unknown>> } = {};
  const answering = (result: () => Promise<unknown>) =>
    Object.assign(() => undefined, {
      raw: (sql: string) => ({
        options: (options: Readonly<Record<string, unknown>>) => {
          Object.assign(sent, { sql, options });
          return result();
        },
      }),
    });

  it("sends values past Knex's own placeholders", async () => {
    const rows = [Object.values(stored)];
    const fields = Object.keys(stored).map((name) => ({ name }));
    const db = knex(answering(async () => ({ rows, fields })));
    const result = await db.query('select "a?b" ? $1', ["x?"]);
    expect(sent).toMatchObject({ sql: 'select "a\\?b" \\? $1', options: { values: ["x?"] } });
    expect(result.rows).toEqual([stored]);
  });

  it("reads rows whose columns an application has renamed", async () => {
    for (const result of [
      { rows: [{ A: stored.jobs, B: stored.others }] },
      { rows: [Object.values(stored)] },
    ]) {
      const queue = new Queue(knex(answering(async () => result)));
      expect(await queue.enqueue(Count({ n: 1 }))).toBe(id);
    }
  });

  it("tells what the server said, without the statement before it", async () => {
    await expect(
      knex(
        answering(() =>
          Promise.reject(
            Object.assign(new Error("select 1 - the server's words"), {
              code: "40001",
              severity: "ERROR",
              detail: "why",
            }),
          ),
        ),
      ).query("select 1", []),
    ).rejects.toMatchObject({ message: "the server's words", code: "40001", detail: "why" });
  });

  it("tells no connection in time", async () => {
    const timeout = Object.assign(new Error("Timeout acquiring a connection"), {
      name: "KnexTimeoutError",
    });
    const queue = new Queue(knex(answering(() => Promise.reject(timeout))));
    await expect(queue.enqueue(Count({ n: 1 }))).rejects.toMatchObject({
      code: "database",
      isRetryable: true,
    });
  });
});

describe("postgres.js", () => {
  const answering = (rows: unknown) =>
    Object.assign(() => undefined, {
      begin: never,
      unsafe: () => ({ raw: async () => rows as never }),
    });

  it("reads rows of bytes whose columns an application has renamed", async () => {
    const values = Object.values(stored).map((value) => Buffer.from(value));
    const columns = [{ name: "Jobs" }, { name: "Others" }];
    for (const rows of [Object.assign([values], { columns }), [values]]) {
      const queue = new Queue(postgresJs(answering(rows)));
      expect(await queue.enqueue(Count({ n: 1 }))).toBe(id);
    }
  });

  it("keeps what is null", async () => {
    const rows = Object.assign([[null]], { columns: [{ name: "a" }] });
    expect(await postgresJs(answering(rows)).query("select null", [])).toEqual({
      rows: [{ a: null }],
    });
  });
});
