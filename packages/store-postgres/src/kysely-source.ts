import { CompiledQuery, type Kysely } from "kysely";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import type { Statement } from "./sql/statement.ts";

/** A Kysely instance of whatever schema: only raw statements are sent through it. */
export type KyselyInstance = Pick<
  Kysely<unknown>,
  "executeQuery" | "withoutPlugins" | "transaction"
>;

/** A borrowed Kysely instance as a source of statements. Its plugins are left out, and it is never destroyed. */
export function kyselySource(kysely: KyselyInstance): SqlSource {
  const db = kysely.withoutPlugins();
  return {
    ...kyselyConnection(db),
    transaction: (work) =>
      db
        .transaction()
        .setIsolationLevel("read committed")
        .setAccessMode("read write")
        .execute((trx) => work(kyselyConnection(trx))),
    close: () => Promise.resolve(),
  };
}

/** A Kysely transaction that somebody else will end. */
export function kyselyConnection(
  db: Pick<Kysely<unknown>, "executeQuery" | "withoutPlugins">,
): SqlConnection {
  const plain = db.withoutPlugins();
  return {
    async run({ text }: Statement, values) {
      const result = await plain.executeQuery<Row>(CompiledQuery.raw(text, [...values]));
      return result.rows;
    },
  };
}
