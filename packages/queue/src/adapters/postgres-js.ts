import { invalidArgument } from "@venturi/core";
import { hasMethods } from "../has-methods.ts";
import type { AdaptedExecutor } from "./adapted-executor.ts";
import { namedRows } from "./named-rows.ts";

/** A `sql` of postgres.js, or that of one of its transactions, by its shape. */
export interface PostgresJsLike {
  unsafe(
    query: string,
    parameters?: never[],
    options?: { readonly prepare?: boolean },
  ): { raw(): PromiseLike<PostgresJsRows> };
}

/** Rows as arrays of what the server sent. */
export type PostgresJsRows = readonly (readonly unknown[])[] & {
  readonly columns?: readonly { readonly name: string }[];
};

/**
 * Enqueues through postgres.js 3; statements are prepared unless the `sql` was made with `prepare: false`. Throws
 * `invalid-argument`.
 *
 * @example
 * ```ts
 * const queue = new Queue(postgresJs(sql));
 * await sql.begin((tx) => queue.within(postgresJs(tx)).enqueue(SendEmail({ to })));
 * ```
 */
export function postgresJs(sql: PostgresJsLike): AdaptedExecutor {
  if (!hasMethods(sql, ["unsafe"])) {
    throw invalidArgument(
      "sql",
      "is nothing of postgres.js",
      "pass what postgres(…) returned, or the sql of sql.begin(async (sql) => …)",
    );
  }
  // What `reserve` returned is one connection, on which its owner may have sent BEGIN.
  const isTransaction = !hasMethods(sql, ["begin"]);
  return {
    handle: sql,
    isTransaction,
    isPool: !isTransaction,
    async query(text, params) {
      // Raw: the server's text, which neither the types nor the transforms of the application have touched. These do
      // rename the columns.
      const rows = await sql.unsafe(text, [...params] as never[], { prepare: true }).raw();
      const texts = rows.map((row) => row.map((value) => (value === null ? null : String(value))));
      return {
        rows: namedRows(
          texts,
          rows.columns?.map(({ name }) => name),
        ),
      };
    },
  };
}
