import { hasMethods } from "./has-methods.ts";
import type { KyselyLike, Runner } from "./sql-executor.ts";

export function isKyselyLike(value: unknown): value is KyselyLike {
  return hasMethods(value, ["executeQuery", "withoutPlugins"]);
}

export function kyselyRunner(kysely: KyselyLike): Runner {
  // A plugin may rename columns or parse results; the rows have to come as the server sent them.
  const plain = kysely.withoutPlugins();
  const db = isKyselyLike(plain) ? plain : kysely;
  return {
    isInTransaction: () => (kysely as { readonly isTransaction?: unknown }).isTransaction === true,
    async run({ text, params }) {
      const result = await db.executeQuery(compiledQuery(text, params) as never);
      return result.rows;
    },
  };
}

/** What Kysely's `CompiledQuery.raw` makes. */
function compiledQuery(sql: string, parameters: readonly unknown[]) {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "venturi" },
  };
}
