export type { PostgresTransaction, SqlTransaction } from "./connections.ts";
export type { KyselyInstance } from "./kysely-source.ts";
export type { BorrowOptions, ConnectOptions, StoreOptions } from "./options.ts";
export type {
  PgClientLike,
  PgPoolLike,
  PgQuery,
  PgQueryable,
  PgResult,
  PgTypes,
} from "./pg-like.ts";
export { PostgresStore } from "./postgres-store.ts";
