import { askPool } from "@venturi/core";
import { hasMethods } from "./has-methods.ts";
import type { Runner } from "./sql-executor.ts";

interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  readonly types: { getTypeParser(): (value: string) => unknown };
}

/** What of a `pg` Pool, Client or PoolClient is used; `pg` itself is never imported. */
interface PgLike {
  query(query: PgQuery): Promise<{ readonly rows: readonly unknown[] }>;
  /** Of clients: "I" outside a transaction. Missing before pg 8.20. */
  getTransactionStatus?(): string | null;
}

/**
 * Whether it is `pg`'s own: only `pg` takes a named statement, an executor of somebody's own is
 * called with text and parameters.
 */
export function isPgLike(value: unknown): value is PgLike {
  if (!hasMethods(value, ["query", "connect", "on"])) return false;
  return hasMethods(value, ["escapeIdentifier"]) || "totalCount" in value;
}

/** Columns come as the server's text, whatever parsers the application has set. */
const types = { getTypeParser: () => (value: string) => value };

export function pgRunner(pg: PgLike, preparedStatements: boolean): Runner {
  return {
    isInTransaction: () => ["T", "E"].includes(pg.getTransactionStatus?.() ?? ""),
    async run({ name, text, params }) {
      const query = { text, values: [...params], types };
      const result = await askPool(pg, () =>
        pg.query(preparedStatements ? { name, ...query } : query),
      );
      return result.rows;
    },
  };
}
