import { readArgument } from "@venturi/core";
import pg from "pg";
import { connectionString, maxConnections } from "./options.ts";
import { perHost, severalHosts } from "./several-hosts.ts";

/** How long the store's own pool waits for a connection, in milliseconds: a network that swallows everything never refuses. */
const connectTimeoutMs = 10_000;

/** The options of `connect` that concern its pool, not checked yet. */
interface OwnPoolOptions {
  readonly url: unknown;
  readonly max: unknown;
  readonly ssl: pg.ClientConfig["ssl"] | undefined;
}

/** Makes the pool of a store that has one of its own, without connecting. Throws `invalid-argument` naming the option. */
export function createPool({ url, max, ssl }: OwnPoolOptions): {
  readonly pool: pg.Pool;
  /** How many hosts the connection string names. */
  readonly hosts: number;
} {
  const urls = perHost(connectionString("connectionString", url));
  const config: pg.PoolConfig & { Client?: typeof pg.Client } = {
    connectionString: urls[0],
    max: maxConnections(max),
    keepAlive: true,
    connectionTimeoutMillis: connectTimeoutMs,
  };
  if (ssl !== undefined) config.ssl = ssl;
  if (urls.length > 1) config.Client = severalHosts(urls);
  return { pool: readArgument("ssl", () => new pg.Pool(config)), hosts: urls.length };
}

/** Resolves when a host has answered; they are asked in turn. Rejects with what the driver says of the last one. */
export async function firstAnswer(pool: pg.Pool, hosts: number): Promise<void> {
  try {
    await pool.query("select 1");
  } catch (error) {
    if (hosts === 1) throw error;
    await firstAnswer(pool, hosts - 1);
  }
}
