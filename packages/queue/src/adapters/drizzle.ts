import { invalidArgument, readMember } from "@venturi/core";
import { hasMethods } from "../has-methods.ts";
import type { AdaptedExecutor } from "./adapted-executor.ts";

/** A PostgreSQL database of Drizzle, over whatever driver, or one of its transactions, by its shape. */
export interface DrizzleLike {
  execute(query: never): PromiseLike<unknown>;
}

/**
 * Enqueues through Drizzle. Throws `invalid-argument`.
 *
 * @example
 * ```ts
 * const queue = new Queue(drizzle(db));
 * await db.transaction((tx) => queue.within(drizzle(tx)).enqueue(SendEmail({ to })));
 * ```
 */
export function drizzle(db: DrizzleLike): AdaptedExecutor {
  if (!hasMethods(db, ["execute", "select"])) {
    throw invalidArgument(
      "db",
      "is no PostgreSQL database of Drizzle",
      "pass what drizzle(…) returned, or the tx of db.transaction(async (tx) => …)",
    );
  }
  const isTransaction = hasMethods(db, ["rollback"]);
  return {
    handle: db,
    isTransaction,
    isPool: !isTransaction && !isClient(readMember(db, "$client")),
    async query(text, params) {
      try {
        const result = await db.execute(statement(text, params) as never);
        return { rows: rowsOf(result) };
      } catch (error) {
        throw unwrapped(error);
      }
    },
  };
}

/** One connection of `pg`, which takes one statement after the other. */
function isClient(value: unknown): boolean {
  return hasMethods(value, ["query", "connect"]) && !("totalCount" in value);
}

/** What Drizzle's own `sql` makes, as far as it is asked for: Drizzle itself is never imported. */
function statement(text: string, params: readonly unknown[]) {
  return { getSQL: () => ({ toQuery: () => ({ sql: text, params: [...params] }) }) };
}

/** Each driver's result comes as it is: rows with members of their own, or an object that holds them. */
function rowsOf(result: unknown): readonly unknown[] {
  const rows = Array.isArray(result) ? result : readMember(result, "rows");
  return rows as readonly unknown[];
}

/** The error of the driver: the one around it repeats the parameters, and with them payloads, in its message. */
function unwrapped(error: unknown): unknown {
  const isWrapper =
    readMember(error, "query") !== undefined && Array.isArray(readMember(error, "params"));
  return isWrapper ? (readMember(error, "cause") ?? error) : error;
}
