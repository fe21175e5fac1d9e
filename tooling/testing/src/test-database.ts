import { createDatabase, dropDatabase } from "@venturi-tooling/postgres";
import pg from "pg";
import { afterAll, inject } from "vitest";
import { throughPooler } from "./pooler.ts";
import "./provided.ts";

/** A database that belongs to one test file. */
export interface TestDatabase {
  /** Connection string, for processes and pools of the test's own. */
  readonly url: string;
  /** The same past a pooler: for sessions that listen, keep settings, or are looked for by their process id. */
  readonly directUrl: string;
  /** A pool on it, ended after the file's last test. */
  readonly pool: pg.Pool;
}

/**
 * Makes the database of a test file and drops it after the file's last test; called as
 * `const database = await testDatabase()` at the top of the file.
 *
 * It is migrated under the prefix `venturi`, unless `{ migrated: false }` asks for an empty one.
 */
export async function testDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const { serverUrl, template } = inject("postgres");
  const directUrl = await createDatabase(serverUrl, options.migrated === false ? {} : { template });
  const url = throughPooler(directUrl);
  const pool = new pg.Pool({ connectionString: url });
  // An idle connection may be ended on purpose; a query that needs one says so itself.
  pool.on("error", () => undefined);
  afterAll(async () => {
    if (!pool.ended) await pool.end();
    await dropDatabase(serverUrl, directUrl);
  });
  return { url, directUrl, pool };
}
