import { readDatabaseFault } from "@venturi/core";
import { CompiledQuery, type Kysely } from "kysely";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import type { Statement } from "./sql/statement.ts";

/** A Kysely transaction of whatever schema, by its shape: only raw statements are sent through it. */
export interface KyselyTransaction {
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>;
  withoutPlugins(): unknown;
}

/** A Kysely instance of whatever schema, by its shape. */
export interface KyselyInstance extends KyselyTransaction {
  connection(): unknown;
}

/**
 * A borrowed Kysely instance as a source of statements. Its plugins are left out, and it is never destroyed.
 *
 * Its pool is out of reach: the application must listen to the pool's `error` events, as with any `pg` pool.
 */
export function kyselySource(kysely: KyselyInstance): SqlSource {
  const db = kysely.withoutPlugins() as Kysely<unknown>;
  return {
    ...kyselyConnection(db),
    transaction: (work) =>
      db.connection().execute((connection) => inTransaction(kyselyConnection(connection), work)),
    close: () => Promise.resolve(),
  };
}

/**
 * Begun and ended here, not by Kysely, which sends ROLLBACK on a lost connection too: nobody listens to the errors of
 * a connection that is in use, and while the rollback is waited for its end would be the end of the process.
 */
async function inTransaction<T>(
  connection: SqlConnection,
  work: (connection: SqlConnection) => Promise<T>,
): Promise<T> {
  await connection.run(begin, []);
  try {
    const result = await work(connection);
    await connection.run(commit, []);
    return result;
  } catch (error) {
    // Without this the connection would be handed on in a failed transaction. What fails here is lost anyway.
    if (readDatabaseFault(error).fate !== "unknown")
      await connection.run(rollback, []).catch(() => undefined);
    throw error;
  }
}

const begin: Statement = { name: "", text: "begin isolation level read committed read write" };
const commit: Statement = { name: "", text: "commit" };
const rollback: Statement = { name: "", text: "rollback" };

/** A Kysely transaction that somebody else will end. */
export function kyselyConnection(db: KyselyTransaction): SqlConnection {
  const plain = db.withoutPlugins() as Kysely<unknown>;
  return {
    async run({ text }: Statement, values) {
      const result = await plain.executeQuery<Row>(CompiledQuery.raw(text, [...values]));
      return result.rows;
    },
  };
}
