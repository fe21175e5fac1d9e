import type { Database } from "./database.ts";
import type { Names } from "./names.ts";
import { type Statement, statement } from "./sql/statement.ts";

/** The numbers that stand for kinds in the hot tables, made on first use and kept: they never change. */
export class Kinds {
  readonly #database: Database;
  readonly #select: Statement;
  readonly #insert: Statement;
  readonly #ids = new Map<string, number>();

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#select = statement(
      "kinds",
      `select id, name from ${names.of("kinds")} where name = any ($1::text[])`,
    );
    this.#insert = statement(
      "kinds_new",
      `insert into ${names.of("kinds")} (name) select unnest($1::text[]) on conflict (name) do nothing`,
    );
  }

  /** Makes sure that all these kinds have numbers. */
  async load(kinds: readonly string[]): Promise<void> {
    // Looked up first: an insert that conflicts burns a number.
    for (const create of [false, true]) {
      const missing = kinds.filter((kind) => !this.#ids.has(kind));
      if (missing.length === 0) return;
      if (create) await this.#database.run(this.#insert, [missing], "register kinds");
      for (const row of await this.#database.run(this.#select, [missing], "look up kinds"))
        this.#ids.set(row["name"] as string, row["id"] as number);
    }
  }

  id(kind: string): number {
    const id = this.#ids.get(kind);
    if (id === undefined) throw new Error(`kind ${JSON.stringify(kind)} has not been loaded`);
    return id;
  }
}
