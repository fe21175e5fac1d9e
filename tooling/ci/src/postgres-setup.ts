import * as storePostgres from "@venturi/store-postgres";
import { setUpPostgres } from "@venturi-tooling/testing/setup";
import pg from "pg";
import type { TestProject } from "vitest/node";

/** Vitest's global set-up of the `postgres` project. */
export default function setup(project: TestProject): Promise<() => Promise<void>> {
  return setUpPostgres(project, async (databaseUrl) => {
    if (!("PostgresStore" in storePostgres)) {
      throw new Error("@venturi/store-postgres exports no PostgresStore yet: nothing to migrate");
    }
    const pool = new pg.Pool({ connectionString: databaseUrl });
    try {
      const Store = storePostgres.PostgresStore as new (options: {
        pool: pg.Pool;
      }) => {
        migrate(): Promise<unknown>;
      };
      await new Store({ pool }).migrate();
    } finally {
      await pool.end();
    }
  });
}
