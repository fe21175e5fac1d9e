// The parts of `pg` that the store uses, by their shape. So a pool made by another copy or version of `pg` fits, and
// nothing here depends on the types of `pg`.

/** A query as `pg` takes it. */
export interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  readonly types?: PgTypes;
  /** After so many milliseconds without an answer the query rejects, and its pool lets go of the connection. */
  readonly query_timeout?: number;
}

/** How the columns of a result are parsed. */
export interface PgTypes {
  getTypeParser(oid: number, format?: string): (value: string) => unknown;
}

/** The result of a query. */
export interface PgResult {
  readonly rows: readonly unknown[];
}

/** A pool or a client. */
export interface PgQueryable {
  query(query: PgQuery): Promise<PgResult>;
}

/** A client that a pool has lent. */
export interface PgClientLike extends PgQueryable {
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  release(error?: Error | boolean): void;
}

/** A pool. */
export interface PgPoolLike extends PgQueryable {
  connect(): Promise<PgClientLike>;
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
  readonly options?: { readonly max?: number };
  /** Connections that nobody uses. */
  readonly idleCount?: number;
  /** Requests that wait for one. */
  readonly waitingCount?: number;
}

/** A client of our own, which only listens. */
export interface PgListenClient {
  connect(): Promise<unknown>;
  query(query: { readonly text: string; readonly values?: unknown[] }): Promise<PgResult>;
  on(event: "error" | "end", listener: (error?: Error) => void): unknown;
  on(
    event: "notification",
    listener: (message: { readonly payload?: string | undefined }) => void,
  ): unknown;
  end(): Promise<void>;
  readonly connection?: { readonly stream?: { destroy?(): unknown } };
}

const numeric = new Set([23, 701]);
const toNumber = (value: string): unknown => Number(value);
const asText = (value: string): unknown => value;

/** Statements return only text, int4 and float8; whatever parsers the application has set change nothing. */
export const plainTypes: PgTypes = {
  getTypeParser: (oid) => (numeric.has(oid) ? toNumber : asText),
};
