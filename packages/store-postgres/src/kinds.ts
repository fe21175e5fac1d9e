import { type ClaimRequest, type Logger, silentLogger } from "@venturi/core";
import type { Database } from "./database.ts";
import type { Names } from "./names.ts";
import { type Statement, statement } from "./sql/statement.ts";

/**
 * How long a kind is waited for whose first job is in a transaction that is still open, in milliseconds. Much shorter
 * than PostgreSQL's `deadlock_timeout`: whoever waits meanwhile for the other kinds that are being registered is
 * neither kept waiting nor taken for part of a deadlock.
 */
const waitMs = 200;

/** How long afterwards it is tried again, in milliseconds; that a kind has come is found before. */
const againMs = 5_000;

const lockNotAvailable = "55P03";

/** The numbers that stand for kinds in the hot tables, made on first use and kept: they never change. */
export class Kinds {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #select: Statement;
  readonly #insert: Statement;
  readonly #ids = new Map<string, number>();
  /** When kinds that somebody's open transaction holds are tried again, on the monotonic clock. */
  readonly #againAt = new Map<string, number>();

  constructor(
    database: Database,
    names: Names,
    logger: Logger = silentLogger,
    now: () => number = () => performance.now(),
  ) {
    this.#database = database;
    this.#logger = logger;
    this.#now = now;
    this.#select = statement(
      "kinds",
      `select id, name from ${names.of("kinds")} where name = any ($1::text[])`,
    );
    this.#insert = statement(
      "kinds_new",
      `insert into ${names.of("kinds")} (name)
  select u.name from (select set_config('lock_timeout', '${waitMs}ms', true) as limited) s, unnest($1::text[]) u(name)
  where s.limited is not null order by u.name
  on conflict (name) do nothing`,
    );
  }

  /**
   * Sees to it that these kinds have numbers, but for those whose first job is in a transaction that is still open:
   * nobody else sees it, and there is nothing of them to claim. The next call finds them once it has been committed.
   */
  async load(kinds: readonly string[], logger: Logger = this.#logger): Promise<void> {
    const missing = this.#unknown(kinds);
    if (missing.length === 0) return;
    // Looked up first: an insert that conflicts burns a number.
    await this.#lookUp(missing);
    const now = this.#now();
    const due = this.#unknown(missing).filter((kind) => !((this.#againAt.get(kind) ?? 0) > now));
    if (due.length === 0) return;
    if (await this.#register(due)) await this.#lookUp(due);
    else this.#putOff(due, logger);
  }

  /** The claim for those of its kinds that have numbers; null: none of them has. */
  async known(request: ClaimRequest): Promise<ClaimRequest | null> {
    await this.load(request.kinds.map(({ kind }) => kind));
    const kinds = request.kinds.filter(({ kind }) => this.#ids.has(kind));
    if (kinds.length === request.kinds.length) return request;
    return kinds.length === 0 ? null : { ...request, kinds };
  }

  id(kind: string): number {
    const id = this.#ids.get(kind);
    if (id === undefined) throw new Error(`kind ${JSON.stringify(kind)} has not been loaded`);
    return id;
  }

  #unknown(kinds: readonly string[]): readonly string[] {
    return kinds.filter((kind) => !this.#ids.has(kind));
  }

  async #lookUp(kinds: readonly string[]): Promise<void> {
    for (const row of await this.#database.run(this.#select, [kinds], "look up kinds")) {
      this.#ids.set(row["name"] as string, row["id"] as number);
      this.#againAt.delete(row["name"] as string);
    }
  }

  /** False: one of them is held by a transaction that is still open, and none was registered. */
  async #register(kinds: readonly string[]): Promise<boolean> {
    try {
      await this.#database.run(this.#insert, [kinds], "register kinds");
      return true;
    } catch (error) {
      if (this.#database.fail(error, "register kinds").sqlState === lockNotAvailable) return false;
      throw error;
    }
  }

  #putOff(kinds: readonly string[], logger: Logger): void {
    const unheard = kinds.filter((kind) => !this.#againAt.has(kind));
    for (const kind of kinds) this.#againAt.set(kind, this.#now() + againMs);
    if (unheard.length === 0) return;
    logger.warn(
      "kinds cannot be claimed yet: the first job of this kind, or of one of these, is in a transaction that is still open",
      { kinds: unheard },
    );
  }
}
