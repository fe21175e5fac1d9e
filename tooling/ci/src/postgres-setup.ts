import { PostgresStore } from "@venturi/store-postgres";
import { setUpPostgres } from "@venturi-tooling/testing/setup";
import pg from "pg";
import type { TestProject } from "vitest/node";

/** Vitest's global set-up of the `postgres` project. */
export default function setup(project: TestProject): Promise<() => Promise<void>> {
  return setUpPostgres(project, async (databaseUrl) => {
    const pool = new pg.Pool({ connectionString: databaseUrl });
    try {
      await new PostgresStore({ pool }).migrate();
    } finally {
      await pool.end();
    }
  });
}
