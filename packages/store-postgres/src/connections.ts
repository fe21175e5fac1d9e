import {
  answerRows,
  invalidArgument,
  readArgument,
  refuseBinary,
  show,
  type VenturiError,
} from "@venturi/core";
import pg from "pg";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import {
  type KyselyInstance,
  type KyselyTransaction,
  kyselyConnection,
  kyselySource,
} from "./kysely-source.ts";
import type { NotifierOptions } from "./notifier.ts";
import type { BorrowOptions, ResolvedOptions } from "./options.ts";
import type { PgListenClient, PgPoolLike, PgQueryable } from "./pg-like.ts";
import { pgSource, pgTransaction } from "./pg-source.ts";
import { perHost, severalHosts } from "./several-hosts.ts";

// What an application hands over is recognised by its shape, so that it does not matter which copy of `pg` or Kysely
// made it.

/**
 * The transactions that `within` and `complete` accept: a `pg` client inside BEGIN … COMMIT, a Kysely transaction, or
 * a transaction of another library as an adapter of `@venturi/queue/adapters` makes it.
 */
export type PostgresTransaction = PgQueryable | KyselyTransaction | SqlTransaction;

/** Whatever runs SQL in a transaction that somebody else will end. */
export interface SqlTransaction {
  query(text: string, params: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  /** False is refused. */
  readonly isTransaction: boolean;
}

/** Where statements run; throws `invalid-argument` for what is neither a pool nor a Kysely instance. */
export function createSource(
  { pool, db }: BorrowOptions,
  { preparedStatements, logger }: ResolvedOptions,
  owned: boolean,
): SqlSource {
  if (isPool(pool) && db === undefined) {
    refuseBinary("pool", pool);
    return pgSource(pool, { preparedStatements, owned, logger });
  }
  if (isKysely(db) && pool === undefined) return kyselySource(db);
  throw notSource(pool, db);
}

/** Says what is wrong with `pool` and `db`, exactly one of which should be given. */
function notSource(pool: unknown, db: unknown): VenturiError {
  const one = "pass { pool: new pg.Pool(…) } or { db: new Kysely(…) }";
  if (pool !== undefined && db !== undefined)
    return invalidArgument("pool", "and db are both given, and one of them is wanted", one);
  if (db !== undefined) {
    if (isPool(db)) return invalidArgument("db", "is a pg pool", "pass it as { pool }");
    return invalidArgument("db", `is not a Kysely instance (got ${kindOf(db)})`, one);
  }
  if (pool === undefined) return invalidArgument("pool", "or db must be given, one of them", one);
  if (isKysely(pool)) return invalidArgument("pool", "is a Kysely instance", "pass it as { db }");
  if (isClient(pool))
    return invalidArgument("pool", "is a pg client, which is one connection", one);
  return invalidArgument("pool", `is not a pg pool (got ${kindOf(pool)})`, one);
}

/** What a value is, for a message. The text of a string is left out: it may be a connection string. */
function kindOf(value: unknown): string {
  return typeof value === "string" ? "a string" : show(value);
}

/** A client for listening, made like the pool's own: same server, same credentials, same TLS. */
export function createListenClient(
  { pool }: BorrowOptions,
  { listen, listenConnectionString, ssl }: ResolvedOptions,
): NotifierOptions["createClient"] | null {
  if (!listen) return null;
  const settings = { keepAlive: true, ...(ssl === undefined ? {} : { ssl }) };
  if (listenConnectionString !== undefined) {
    const urls = perHost(listenConnectionString);
    const ListenClient = urls.length > 1 ? severalHosts(urls) : pg.Client;
    return () => new ListenClient({ connectionString: listenConnectionString, ...settings });
  }
  const { Client, options } = (pool ?? {}) as {
    Client?: new (config: object) => PgListenClient;
    options?: { readonly password?: unknown };
  };
  if (Client === undefined || options === undefined) return null;
  // A pool hides its password from whoever lists its options.
  const { password } = options;
  return () =>
    new Client({ ...options, ...(password === undefined ? {} : { password }), ...settings });
}

/** The connection of a transaction that somebody else began; throws `invalid-argument` for anything else. */
export function connectionOf(tx: PostgresTransaction, preparedStatements: boolean): SqlConnection {
  return readArgument("tx", () => recognised(tx, preparedStatements));
}

function recognised(tx: PostgresTransaction, preparedStatements: boolean): SqlConnection {
  const given: object = tx ?? {};
  const { totalCount, isTransaction, query } = given as Readonly<Record<string, unknown>>;
  // A pool would write on another connection than the transaction's.
  if (isKysely(tx) && isTransaction !== false) return kyselyConnection(tx);
  if (typeof query === "function" && typeof isTransaction === "boolean") {
    if (isTransaction) return executorConnection(tx as SqlTransaction);
  } else if (typeof query === "function" && typeof totalCount !== "number") {
    refuseBinary("tx", given);
    return pgTransaction(tx as PgQueryable, preparedStatements);
  }
  throw notTransaction(given, isTransaction === false);
}

/** The same words as in a queue that has no store. */
function notTransaction(tx: object, isOutside: boolean): VenturiError {
  if (isPool(tx)) {
    return invalidArgument(
      "tx",
      "is a pool, and a transaction lives on one connection",
      "pass the client on which you began it",
    );
  }
  if (isKysely(tx)) {
    return invalidArgument(
      "tx",
      "is a Kysely instance outside of its transactions",
      "pass the trx of db.transaction().execute((trx) => …)",
    );
  }
  if (isOutside) {
    return invalidArgument(
      "tx",
      "is outside of a transaction",
      "adapt what the library hands to the callback of its transaction",
    );
  }
  return invalidArgument(
    "tx",
    "is not a transaction of this store",
    "pass the pg client on which you sent BEGIN, the trx of a Kysely transaction, or what an adapter made of another library's",
  );
}

function executorConnection(executor: SqlTransaction): SqlConnection {
  return {
    async run({ text }, values) {
      return answerRows(await executor.query(text, [...values])) as readonly Row[];
    },
  };
}

function isPool(value: unknown): value is PgPoolLike {
  const pool = value as Partial<PgPoolLike> | null | undefined;
  return (
    typeof pool === "object" &&
    pool !== null &&
    typeof pool.query === "function" &&
    typeof pool.connect === "function" &&
    typeof pool.on === "function" &&
    !isClient(pool)
  );
}

/** Whether a value is a `pg` client: it has all that a pool has, but is one connection. */
function isClient(value: unknown): boolean {
  return typeof value === "object" && value !== null && "escapeIdentifier" in value;
}

function isKysely(value: unknown): value is KyselyInstance {
  const db = value as Partial<KyselyInstance> | null | undefined;
  return (
    typeof db === "object" &&
    db !== null &&
    typeof db.executeQuery === "function" &&
    typeof db.withoutPlugins === "function"
  );
}
