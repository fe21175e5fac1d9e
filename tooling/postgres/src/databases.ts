import { randomBytes } from "node:crypto";
import pg from "pg";

/** The same server and user, another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

/** Creates a database, from a template if one is named, and returns its connection string. */
export async function createDatabase(
  serverUrl: string,
  { name = randomName(), template }: { name?: string; template?: string } = {},
): Promise<string> {
  const from = template === undefined ? "" : ` template ${pg.escapeIdentifier(template)}`;
  await onServer(serverUrl, (client) =>
    client.query(`create database ${pg.escapeIdentifier(name)}${from}`),
  );
  return withDatabase(serverUrl, name);
}

/** How long sessions that are ending may take, in milliseconds. */
const farewellMs = 5_000;

/**
 * Drops a database, and whoever is still connected to it. A pool that has ended has said goodbye, but not yet gone:
 * told by the server to go, its connections would raise an error that nobody hears any more.
 */
export async function dropDatabase(serverUrl: string, databaseUrl: string): Promise<void> {
  const name = decodeURIComponent(new URL(databaseUrl).pathname.slice(1));
  await onServer(serverUrl, async (client) => {
    const giveUpAt = performance.now() + farewellMs;
    const sessions = "select 1 from pg_stat_activity where datname = $1 limit 1";
    while (performance.now() < giveUpAt && (await client.query(sessions, [name])).rowCount !== 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await client.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
  });
}

function randomName(): string {
  return `venturi_test_${randomBytes(6).toString("hex")}`;
}

async function onServer(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
