import { answerRows, invalidArgument, readMember } from "@venturi/core";
import { hasMethods } from "../has-methods.ts";
import type { AdaptedExecutor } from "./adapted-executor.ts";
import { DriverError, textMember } from "./driver-error.ts";
import { namedRows } from "./named-rows.ts";

/** A Knex instance or transaction of PostgreSQL, by its shape. */
export interface KnexLike {
  raw(sql: string): {
    options(options: Readonly<Record<string, unknown>>): PromiseLike<unknown>;
  };
}

/**
 * Enqueues through Knex over `pg`. Throws `invalid-argument`.
 *
 * @example
 * ```ts
 * const queue = new Queue(knex(db));
 * await db.transaction((trx) => queue.within(knex(trx)).enqueue(SendEmail({ to })));
 * ```
 */
export function knex(db: KnexLike): AdaptedExecutor {
  if (!hasMethods(db, ["raw"])) {
    throw invalidArgument(
      "db",
      "is nothing of Knex",
      "pass what knex(…) returned, or the trx of db.transaction(async (trx) => …)",
    );
  }
  const isTransaction = (db as { readonly isTransaction?: unknown }).isTransaction === true;
  return {
    handle: db,
    isTransaction,
    isPool: !isTransaction,
    async query(text, params) {
      try {
        // The values go past Knex, which would write them into the message of an error; its own placeholder has to be
        // escaped all the same.
        const statement = db.raw(text.replaceAll("?", "\\?"));
        const result = await statement.options({ values: [...params], rowMode: "array", types });
        return { rows: rowsOf(result) };
      } catch (error) {
        throw driverError(error, text);
      }
    },
  };
}

/** Columns come as the server's text, whatever parsers the application has set. */
const types = { getTypeParser: () => (value: string) => value };

/** The application may have Knex rename columns, or unwrap the rows; `fields` are what the server called the columns. */
function rowsOf(result: unknown): readonly unknown[] {
  const rows = answerRows(result);
  const fields = readMember(result, "fields");
  const names = Array.isArray(fields) ? fields.map((field) => textMember(field, "name")) : [];
  if (!names.every((name) => name !== undefined)) return rows;
  return namedRows(rows as readonly object[], names.length === 0 ? undefined : names);
}

/** Knex puts the statement before the driver's message. */
function driverError(error: unknown, text: string): unknown {
  const message = textMember(error, "message") ?? "";
  if (textMember(error, "name") === "KnexTimeoutError") {
    return new DriverError(message, { code: "CONNECT_TIMEOUT", cause: error });
  }
  const code = textMember(error, "code");
  const isServers = code !== undefined && textMember(error, "severity") !== undefined;
  if (!isServers || !message.startsWith(`${text} - `)) return error;
  return new DriverError(message.slice(text.length + 3), {
    code,
    detail: textMember(error, "detail"),
    cause: error,
  });
}
