import { fileURLToPath } from "node:url";
import { PostgresStore } from "@venturi/store-postgres";
import { setUpPostgres } from "@venturi-tooling/testing/setup";
import pg from "pg";
import type { TestProject } from "vitest/node";

const poolerSetup = fileURLToPath(new URL("./pooler-setup.ts", import.meta.url));

/** Vitest's global set-up of the `postgres` project. */
export default function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.env["VENTURI_POOLER"]) project.config.setupFiles.push(poolerSetup);
  return setUpPostgres(project, async (databaseUrl) => {
    const pool = new pg.Pool({ connectionString: databaseUrl });
    try {
      await new PostgresStore({ pool }).migrate();
    } finally {
      await pool.end();
    }
  });
}
