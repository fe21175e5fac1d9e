import {
  isVenturiError,
  type Logger,
  readDatabaseFault,
  toDatabaseError,
  VenturiError,
} from "@venturi/core";
import type { Statement } from "./sql/statement.ts";

/** A row as the server sends it: text, numbers and nulls. */
export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement; what the driver throws comes out as it is. */
export interface SqlConnection {
  run(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]>;
}

/** Where statements run: a pool of ours, or what an application lent. */
export interface SqlSource extends SqlConnection {
  /**
   * Runs work in one READ COMMITTED transaction: committed when it resolves, rolled back when it rejects. With as much
   * patience as its `only` statement has, where it is one.
   */
  transaction<T>(
    work: (connection: SqlConnection) => Promise<T>,
    only?: Partial<Statement>,
  ): Promise<T>;
  close(): Promise<void>;
}

/**
 * Runs the store's statements, each by itself and at READ COMMITTED: where the database's default is stricter, or where
 * sessions are set to read statements otherwise, in a transaction of its own that says so, since a pooled session must
 * not be told to change. Errors come out as `VenturiError`.
 */
export class Database {
  readonly #source: SqlSource;
  readonly #prefix: string;
  readonly #logger: Logger;
  #defaults: Promise<Defaults> | undefined;
  #sawStrict = false;
  #running = 0;
  #closing: Promise<void> | undefined;
  #onIdle: () => void = () => undefined;

  constructor(source: SqlSource, prefix: string, logger: Logger) {
    this.#source = source;
    this.#prefix = prefix;
    this.#logger = logger;
  }

  /** Runs one statement; `doing` says for an error what could not be done. */
  async run(
    statement: Statement,
    values: readonly unknown[],
    doing: string,
  ): Promise<readonly Row[]> {
    try {
      return await this.runUnmapped(statement, values);
    } catch (error) {
      throw this.fail(error, doing);
    }
  }

  /** The same, but what the driver throws comes out as it is. */
  async runUnmapped(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#counted(async () => {
      try {
        const { isStrict, isOdd } = await this.#readDefaults();
        if (!isStrict && !this.#sawStrict && !isOdd)
          return await this.#source.run(statement, values);
        return await this.#source.transaction(async (connection) => {
          if (isOdd) await connection.run(plainSettings, []);
          return await connection.run(statement, values);
        }, statement);
      } catch (error) {
        // The default may have been made stricter since it was asked for.
        if (readDatabaseFault(error).sqlState === "40001") this.#defaults = undefined;
        throw error;
      }
    });
  }

  /** Work of several statements, in one transaction; as to settings and level, as if each was run by {@link run}. */
  async transaction<T>(work: (connection: SqlConnection) => Promise<T>, doing: string): Promise<T> {
    try {
      return await this.#counted(() =>
        this.#source.transaction(async (connection) => {
          await connection.run(plainSettings, []);
          return await work(connection);
        }),
      );
    } catch (error) {
      throw this.fail(error, doing);
    }
  }

  /** Told by a statement's own answer that sessions start at another level than was thought. */
  sawIsolation(level: string): void {
    if (level !== "read committed") this.#sawStrict = true;
  }

  fail(error: unknown, doing: string): VenturiError {
    if (isVenturiError(error)) return error;
    return toDatabaseError(error, { doing, prefix: this.#prefix });
  }

  /** Throws `closed` after {@link close}. */
  refuseIfClosed(): void {
    if (this.#closing !== undefined)
      throw new VenturiError("closed", "this store has been closed: make another to go on");
  }

  /** Refuses what is asked from now on, and resolves when what is under way has ended. */
  close(): Promise<void> {
    this.#closing ??= this.#idle().then(() => this.#source.close());
    return this.#closing;
  }

  #idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  async #counted<T>(work: () => Promise<T>): Promise<T> {
    this.refuseIfClosed();
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#onIdle();
    }
  }

  #readDefaults(): Promise<Defaults> {
    this.#defaults ??= this.#source.run(sessionDefaults, []).then(
      ([row]) => this.#toDefaults(row ?? {}),
      (error: unknown) => {
        this.#defaults = undefined;
        throw error;
      },
    );
    return this.#defaults;
  }

  #toDefaults({ level, path, nulls, digits }: Row): Defaults {
    const isStrict = level !== "read committed";
    const isOdd = isShadowed(String(path)) || nulls === "off" || Number(digits) < 0;
    if (isStrict)
      this.#logger.info("statements run in READ COMMITTED transactions: the default is stricter", {
        level,
      });
    if (isOdd)
      this.#logger.info(
        "statements run in transactions with settings of their own: those of the sessions would change what they mean",
        { search_path: path, array_nulls: nulls, extra_float_digits: digits },
      );
    return { isStrict, isOdd };
  }
}

/** What holds for a session that nobody has told otherwise. */
interface Defaults {
  /** A level above READ COMMITTED. */
  readonly isStrict: boolean;
  /** Settings under which a statement, or what is passed to it, means something else. */
  readonly isOdd: boolean;
}

/** Whether a search path names other schemas before the system's own, which otherwise comes first by itself. */
function isShadowed(path: string): boolean {
  return /,\s*"?pg_catalog"?\s*(,|$)/.test(path);
}

const sessionDefaults: Statement = {
  name: "venturi_session_defaults",
  text: `select pg_catalog.current_setting('default_transaction_isolation') as level, pg_catalog.current_setting('search_path') as path,
    pg_catalog.current_setting('array_nulls') as nulls, pg_catalog.current_setting('extra_float_digits') as digits`,
  isPrompt: true,
};

/**
 * Until the end of the transaction: functions and operators are PostgreSQL's own, a null in an array is one and not the
 * text NULL, and instants come with all their digits.
 */
const plainSettings: Statement = {
  name: "venturi_plain_settings",
  text: `select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('array_nulls', 'on', true),
    pg_catalog.set_config('extra_float_digits', '1', true)`,
  isPrompt: true,
};
