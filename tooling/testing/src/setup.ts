import { randomBytes } from "node:crypto";
import {
  createDatabase,
  dropDatabase,
  PgBouncer,
  providePostgres,
  withDatabase,
} from "@venturi-tooling/postgres";
import type { TestProject } from "vitest/node";
import { goThroughPooler } from "./pooler.ts";
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
  const { VENTURI_POOLER } = process.env;
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
    const pooler = await startPooler(server.url, VENTURI_POOLER);
    return async () => {
      await pooler?.close();
      await dropDatabase(server.url, templateUrl);
      await server.stop();
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** A pooler before the server, if one is asked for: `listen` past it, or `poll`. */
async function startPooler(serverUrl: string, mode: string | undefined) {
  if (mode === undefined || mode === "direct") return undefined;
  if (mode !== "listen" && mode !== "poll")
    throw new Error(`VENTURI_POOLER is ${mode}; make it listen, poll or direct`);
  const pooler = await PgBouncer.before(serverUrl, { poolSize: 40 });
  goThroughPooler({ address: pooler.address, serverUrl, listens: mode === "listen" });
  return pooler;
}
