/**
 * Anything that runs an SQL statement with `$1` parameters: a `pg` Pool, Client or PoolClient as it is, or an object of
 * your own around another driver.
 *
 * @example
 * ```ts
 * const executor: SqlExecutor = { query: (text, params) => pglite.query(text, [...params]) };
 * ```
 */
export interface SqlExecutor {
  /** Runs one statement, and resolves to its rows. */
  query(text: string, params: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  /** Whether it is a transaction that somebody else will end. Absent: unknown. */
  readonly isTransaction?: boolean | undefined;
}

/** A Kysely instance or transaction, by its shape: Kysely itself is never imported. */
export interface KyselyLike {
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>;
  withoutPlugins(): unknown;
}

/** Runs the queue's statements and returns their rows; what a driver throws comes out as it is. */
export interface Runner {
  run(statement: Statement): Promise<readonly unknown[]>;
  /** Whether it is now the connection of a transaction that somebody else will end, as far as can be told. */
  isInTransaction(): boolean;
}

interface Statement {
  /** Under which it is prepared where the driver can do that. */
  readonly name: string;
  readonly text: string;
  readonly params: readonly unknown[];
}
