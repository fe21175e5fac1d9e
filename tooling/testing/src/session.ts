import pg from "pg";
import { pastPooler } from "./pooler.ts";

/**
 * A connection past the pooler, if a pool goes through one: it listens, keeps settings or statements, or is killed.
 * Whoever asks for it ends it.
 */
export async function openSession({ options }: pg.Pool): Promise<pg.Client> {
  const url = options.connectionString;
  const client = new pg.Client(
    url === undefined ? options : { ...options, connectionString: pastPooler(url) },
  );
  await client.connect();
  return client;
}
