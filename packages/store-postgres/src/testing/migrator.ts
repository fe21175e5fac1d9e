// A process that migrates whatever it is told to, a line each.
import { createInterface } from "node:readline";
import { pooledStoreOptions } from "@venturi-tooling/testing/pooler";
import pg from "pg";
import { PostgresStore } from "../postgres-store.ts";

/** What a migrator is told. */
export interface MigrateOrder {
  readonly url: string;
  readonly schema: string;
  readonly prefixes: readonly string[];
}

const answer = (line: string) => process.stdout.write(`${line}\n`);
answer("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const { url, schema, prefixes } = JSON.parse(line) as MigrateOrder;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  try {
    const options = { pool, schema, ...pooledStoreOptions(url) };
    for (const prefix of prefixes) await new PostgresStore({ ...options, prefix }).migrate();
    answer("migrated");
  } catch (error) {
    answer(String(error));
  } finally {
    await pool.end();
  }
}
