import { type ClaimKind, type ClaimRequest, type Logger, silentLogger } from "@venturi/core";
import type { Database } from "./database.ts";
import type { Names } from "./names.ts";
import { type Statement, statement } from "./sql/statement.ts";

/**
 * How long to wait for a kind whose first job is in a transaction that is still open, in milliseconds. It is much shorter
 * than PostgreSQL's `deadlock_timeout`, so that whoever waits for the other kinds that are being registered does not wait
 * long, and is not taken for part of a deadlock.
 */
const waitMs = 200;

/** How long afterwards its registration is tried again, in milliseconds. Whether somebody else has done it is seen sooner. */
const againMs = 5_000;

/** How often the numbers are read again at most while claims find fewer kinds than they ask for, in milliseconds. */
const anewMs = 5_000;

const lockNotAvailable = "55P03";

/** A kind with its number. */
export interface KnownKind extends ClaimKind {
  readonly id: number;
}

/** A claim with the numbers of its kinds, which stay the same from its beginning to its end. */
export interface KnownRequest extends ClaimRequest {
  readonly kinds: readonly KnownKind[];
}

/**
 * The numbers that stand for kinds in the hot tables. They are made on first use and kept.
 *
 * They change only if somebody drops and makes the tables again, or empties them and restarts their numbers, while a
 * store is in use. So a claim looks only at kinds whose number still has the name it asks for; and the numbers are read
 * again when a claim has found fewer kinds, and when a worker starts.
 */
export class Kinds {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #select: Statement;
  readonly #insert: Statement;
  readonly #ids = new Map<string, number>();
  /** When to try again to register a kind that an open transaction holds. */
  readonly #againAt = new Map<string, number>();
  /** When the numbers may be read again, on the same clock. */
  #anewAt = Number.NEGATIVE_INFINITY;

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
   * Looks up the numbers of these kinds, registering new ones. A kind whose first job is in a transaction that is still
   * open gets none: there is nothing to claim of it yet. A later call finds it once that has been committed.
   */
  load(kinds: readonly string[]): Promise<void> {
    return this.#load(this.#unknown(kinds), this.#logger);
  }

  /** The same, reading even known numbers again. */
  loadAnew(kinds: readonly string[], logger: Logger = this.#logger): Promise<void> {
    return this.#load(kinds, logger);
  }

  async #load(missing: readonly string[], logger: Logger): Promise<void> {
    if (missing.length === 0) return;
    // Looked up first, since an insert that conflicts uses up a number.
    await this.#lookUp(missing);
    const now = this.#now();
    const due = this.#unknown(missing).filter((kind) => !((this.#againAt.get(kind) ?? 0) > now));
    if (due.length === 0) return;
    if (await this.#register(due)) await this.#lookUp(due);
    else this.#putOff(due, logger);
  }

  /** The claim, limited to those of its kinds that have numbers; null: none has. */
  async known(request: ClaimRequest): Promise<KnownRequest | null> {
    await this.load(request.kinds.map(({ kind }) => kind));
    const kinds: KnownKind[] = [];
    for (const each of request.kinds) {
      const id = this.#ids.get(each.kind);
      if (id !== undefined) kinds.push({ ...each, id });
    }
    return kinds.length === 0 ? null : { ...request, kinds };
  }

  /**
   * Reads the numbers again after a claim that found fewer kinds than it asked for, and says whether one of its numbers
   * had changed. At most every five seconds, since mostly a kind is only paused; false in between. Never throws, since the
   * claim may have brought jobs.
   */
  async readAnew({ kinds }: KnownRequest): Promise<boolean> {
    const now = this.#now();
    if (now < this.#anewAt) return false;
    this.#anewAt = now + anewMs;
    await this.#lookUp([...this.#ids.keys()]).catch(() => undefined);
    return kinds.some(({ kind, id }) => this.#ids.get(kind) !== id);
  }

  #unknown(kinds: readonly string[]): readonly string[] {
    return kinds.filter((kind) => !this.#ids.has(kind));
  }

  async #lookUp(kinds: readonly string[]): Promise<void> {
    const rows = await this.#database.run(this.#select, [kinds], "look up kinds");
    for (const kind of kinds) this.#ids.delete(kind);
    for (const row of rows) {
      this.#ids.set(row["name"] as string, row["id"] as number);
      this.#againAt.delete(row["name"] as string);
    }
  }

  /** Registers kinds. False: an open transaction holds one of them, and none was registered. */
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
