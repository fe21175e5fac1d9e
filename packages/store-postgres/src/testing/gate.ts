import pg from "pg";
import { PostgresStore } from "../postgres-store.ts";
import { until } from "./until.ts";

/** The database of a test, and where it is reached: through whatever the tests run through, and directly. */
interface Place {
  readonly pool: pg.Pool;
  readonly url: string;
  readonly directUrl: string;
}

const key = 77;

/**
 * A gate before the clock of one store: while it is shut, the store's statements stand where they first ask for the
 * time, which claims do when their snapshot has been taken and no row is locked yet.
 */
export class Gate {
  readonly store: PostgresStore;
  readonly #pool: pg.Pool;
  readonly #keeper: pg.Client;

  private constructor(pool: pg.Pool, keeper: pg.Client) {
    this.#pool = pool;
    this.#keeper = keeper;
    this.store = new PostgresStore({ pool });
  }

  static async build({ pool, url, directUrl }: Place): Promise<Gate> {
    await pool.query(`create or replace function venturi_clock() returns timestamptz language plpgsql volatile as $$ begin
      if current_setting('application_name') = 'gated' then perform pg_advisory_lock_shared(${key}), pg_advisory_unlock_shared(${key}); end if;
      return statement_timestamp(); end $$`);
    const keeper = new pg.Client({ connectionString: directUrl });
    await keeper.connect();
    return new Gate(new pg.Pool({ connectionString: url, application_name: "gated" }), keeper);
  }

  /** What a statement of the store comes to while `meanwhile` was done: after its snapshot, before it locked a row. */
  async hold<T>(statement: () => Promise<T>, meanwhile: () => Promise<void>): Promise<T> {
    await this.#keeper.query(`select pg_advisory_lock(${key})`);
    try {
      const answer = statement();
      await until(() => this.#isReached());
      await meanwhile();
      await this.#keeper.query(`select pg_advisory_unlock(${key})`);
      return await answer;
    } finally {
      await this.#keeper.query("select pg_advisory_unlock_all()");
    }
  }

  async end(): Promise<void> {
    await this.#pool.end();
    await this.#keeper.end();
  }

  async #isReached(): Promise<boolean> {
    const { rows } = await this.#keeper.query(
      `select from pg_locks where locktype = 'advisory' and objid = ${key} and not granted
        and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.length === 1;
  }
}
