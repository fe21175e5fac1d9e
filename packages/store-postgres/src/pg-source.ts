import type { Logger } from "@venturi/core";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import { type PgClientLike, type PgPoolLike, type PgQueryable, plainTypes } from "./pg-like.ts";
import type { Statement } from "./sql/statement.ts";

export interface PgSourceOptions {
  readonly preparedStatements: boolean;
  /** Whether `close` ends the pool. */
  readonly owned: boolean;
  readonly logger: Logger;
}

/** A `pg` pool as a source of statements. */
export function pgSource(
  pool: PgPoolLike,
  { preparedStatements, owned, logger }: PgSourceOptions,
): SqlSource {
  guardPool(pool, logger);
  return {
    run: (statement, values) => run(pool, statement, values, preparedStatements),
    async transaction(work) {
      const client = await pool.connect();
      // A checked-out client whose connection dies tells nobody but itself, and unheard ends the process.
      const onError = () => undefined;
      client.on("error", onError);
      let broken: Error | undefined;
      try {
        return await inTransaction(client, preparedStatements, work);
      } catch (error) {
        // Whatever state the session is in, nobody else should meet it.
        broken = error instanceof Error ? error : new Error("transaction failed");
        throw error;
      } finally {
        client.removeListener("error", onError);
        client.release(broken);
      }
    },
    close: () => (owned ? pool.end() : Promise.resolve()),
  };
}

/** A `pg` client whose transaction somebody else began and will end. */
export function pgTransaction(client: PgQueryable, preparedStatements: boolean): SqlConnection {
  return { run: (statement, values) => run(client, statement, values, preparedStatements) };
}

async function inTransaction<T>(
  client: PgClientLike,
  preparedStatements: boolean,
  work: (connection: SqlConnection) => Promise<T>,
): Promise<T> {
  await client.query({ text: "begin isolation level read committed read write", values: [] });
  const result = await work(pgTransaction(client, preparedStatements));
  await client.query({ text: "commit", values: [] });
  return result;
}

async function run(
  queryable: PgQueryable,
  { name, text }: Statement,
  values: readonly unknown[],
  preparedStatements: boolean,
): Promise<readonly Row[]> {
  const query = { text, values: [...values], types: plainTypes };
  const result = await queryable.query(preparedStatements ? { name, ...query } : query);
  return result.rows as readonly Row[];
}

const guarded = Symbol.for("venturi.pool-guarded");

/** An idle connection that dies raises an error event on its pool; unheard, it ends the process. Once a pool. */
function guardPool(pool: PgPoolLike, logger: Logger): void {
  const marked = pool as PgPoolLike & { [guarded]?: true };
  if (marked[guarded]) return;
  Object.defineProperty(pool, guarded, { value: true });
  pool.on("error", (error) =>
    logger.warn("an idle database connection was lost", { message: error.message }),
  );
}
