import { silentLogger } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { initial } from "./migrations/0001-initial/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { createNames } from "./names.ts";
import { pgSource } from "./pg-source.ts";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";

const database = await testDatabase({ migrated: false });
const names = createNames({ prefix: "venturi", schema: "public" });
const { rows: known } = await database.pool.query<{ name: string }>(
  "select name from pg_settings where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout')",
);
const pools: pg.Pool[] = [];

beforeEach(async () => {
  await database.pool.query("drop schema public cascade; create schema public");
});
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.end())));

/** Sessions that are ended, or whose statements are, after so many milliseconds. */
function impatient(setting: string, ms: number): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database.directUrl,
    max: 1,
    options: `-c ${setting}=${ms}`,
  });
  pool.on("error", () => undefined);
  pools.push(pool);
  return pool;
}

const slow: Migration = {
  ...initial,
  statements: (n) => [...initial.statements(n), "select pg_sleep(0.4)"],
};

function run(pool: pg.Pool, steps: readonly Migration[]): Promise<void> {
  const source = pgSource(pool, { preparedStatements: true, owned: false, logger: silentLogger });
  return migrate(new Database(source, "venturi", silentLogger), names, steps);
}

describe.each(known)("where sessions have a short $name", ({ name }) => {
  it("a step takes as long as it needs, and so do those who wait for it", async () => {
    const waiting = Array.from({ length: 4 }, () => run(impatient(name, 150), [slow]));
    expect(await Promise.allSettled(waiting)).toEqual(
      waiting.map(() => ({ status: "fulfilled", value: undefined })),
    );
    await expectInvariants(database.pool);
  });

  it("it holds again for what the session does next", async () => {
    const pool = impatient(name, 150);
    await run(pool, [initial]);
    expect((await pool.query(`show ${name}`)).rows).toEqual([{ [name]: "150ms" }]);
  });
});

describe("a database whose encoding is not UTF8", () => {
  it.each(["LATIN1", "SQL_ASCII", "EUC_JP"])(
    "but %s is refused before anything is made",
    async (encoding) => {
      const other = new URL(database.directUrl);
      other.pathname += `_${encoding.toLowerCase()}`;
      const name = pg.escapeIdentifier(other.pathname.slice(1));
      await database.pool.query(
        `create database ${name} encoding '${encoding}' template template0`,
      );
      const pool = new pg.Pool({ connectionString: other.href });
      try {
        const error = await failureOf(new PostgresStore({ pool, schema: "queue" }).migrate());
        expect(error).toMatchObject({ code: "migration", isRetryable: false });
        expect(error.message).toContain(`the encoding ${encoding}: migrate one that has UTF8`);
        const { rows } = await pool.query("select from pg_namespace where nspname = 'queue'");
        expect(rows).toEqual([]);
      } finally {
        await pool.end();
        await database.pool.query(`drop database ${name} with (force)`);
      }
    },
  );
});
