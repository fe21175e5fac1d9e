import type pg from "pg";

/** What an application does about a pool that is out of a queue's reach: a lost connection must not end the process. */
export function surviveLosses(pool: pg.Pool): void {
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
}
