import { randomBytes } from "node:crypto";
import {
  createDatabase,
  dropDatabase,
  providePostgres,
  withDatabase,
} from "@venturi-tooling/postgres";
import type { TestProject } from "vitest/node";
import "./provided.ts";

/**
 * Set-up of the postgres tests: one server a run and one migrated database on it, which each test
 * file copies. `migrate` is handed in, so that this package needs none of those under test.
 */
export async function setUpPostgres(
  project: TestProject,
  migrate: (databaseUrl: string) => Promise<void>,
): Promise<() => Promise<void>> {
  const { TEST_DATABASE_URL, DATABASE_URL, VENTURI_POSTGRES, VENTURI_POSTGRES_VERSION } =
    process.env;
  const version = VENTURI_POSTGRES_VERSION === "14" ? 14 : 18;
  const server = await providePostgres(
    { version, durable: false },
    { DATABASE_URL: TEST_DATABASE_URL ?? DATABASE_URL, VENTURI_POSTGRES },
  );
  try {
    const template = `venturi_template_${randomBytes(4).toString("hex")}`;
    await createDatabase(server.url, { name: template });
    const templateUrl = withDatabase(server.url, template);
    await migrate(templateUrl);
    project.provide("postgres", { serverUrl: server.url, template });
    return async () => {
      await dropDatabase(server.url, templateUrl);
      await server.stop();
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
