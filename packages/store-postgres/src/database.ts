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
 * Runs the store's statements, each by itself and at READ COMMITTED: where the database's default is stricter, in a
 * transaction of its own that says so, since a pooled session must not be told to change. Errors come out as
 * `VenturiError`.
 */
export class Database {
  readonly #source: SqlSource;
  readonly #prefix: string;
  readonly #logger: Logger;
  #strict: Promise<boolean> | undefined;
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
        if (!(await this.#isStrict())) return await this.#source.run(statement, values);
        return await this.#source.transaction(
          (connection) => connection.run(statement, values),
          statement,
        );
      } catch (error) {
        // The default may have been made stricter since it was asked for.
        if (readDatabaseFault(error).sqlState === "40001") this.#strict = undefined;
        throw error;
      }
    });
  }

  async transaction<T>(work: (connection: SqlConnection) => Promise<T>, doing: string): Promise<T> {
    try {
      return await this.#counted(() => this.#source.transaction(work));
    } catch (error) {
      throw this.fail(error, doing);
    }
  }

  /** Told by a statement's own answer that sessions start at another level than was thought. */
  sawIsolation(level: string): void {
    if (level !== "read committed") this.#strict = Promise.resolve(true);
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

  #isStrict(): Promise<boolean> {
    this.#strict ??= this.#source.run(defaultIsolation, []).then(
      ([row]) => {
        const strict = row?.["level"] !== "read committed";
        if (strict)
          this.#logger.info(
            "statements run in READ COMMITTED transactions: the default is stricter",
            { level: row?.["level"] },
          );
        return strict;
      },
      (error: unknown) => {
        this.#strict = undefined;
        throw error;
      },
    );
    return this.#strict;
  }
}

const defaultIsolation: Statement = {
  name: "venturi_default_isolation",
  text: "select current_setting('default_transaction_isolation') as level",
  isPrompt: true,
};
