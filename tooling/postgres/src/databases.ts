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
  await onServer(serverUrl, `create database ${pg.escapeIdentifier(name)}${from}`);
  return withDatabase(serverUrl, name);
}

/** Drops a database, and whoever is still connected to it. */
export async function dropDatabase(serverUrl: string, databaseUrl: string): Promise<void> {
  const name = decodeURIComponent(new URL(databaseUrl).pathname.slice(1));
  await onServer(serverUrl, `drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
}

function randomName(): string {
  return `venturi_test_${randomBytes(6).toString("hex")}`;
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
