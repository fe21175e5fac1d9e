import pg from "pg";

/** Counters of one database at one moment. */
export interface Counters {
  /** All that the server has written, autovacuum and other databases included. */
  readonly walBytes: number;
  /** What the statements in this database wrote. */
  readonly statementWalBytes: number;
  readonly statements: number;
  readonly commits: number;
}

/** What stands in one database's tables. */
export interface TableCounts {
  readonly bytes: number;
  readonly deadTuples: number;
  readonly updates: number;
  readonly hotUpdates: number;
}

/** Reads what the server counts, over a connection that the system under test knows nothing of. */
export class DatabaseMeter {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(url: string): Promise<DatabaseMeter> {
    const client = new pg.Client(url);
    await client.connect();
    await client.query("create extension if not exists pg_stat_statements");
    return new DatabaseMeter(client);
  }

  /** After it, no page images: these depend on when the last checkpoint was, and not on the system. */
  async checkpoint(): Promise<void> {
    await this.#client.query("checkpoint");
  }

  /** WAL is the server's, so nothing else may run on it. */
  async counters(): Promise<Counters> {
    const { rows } = await this.#client.query<Counters>(
      `select /* meter */ (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as "walBytes",
         s.statements, s."statementWalBytes",
         pg_stat_get_db_xact_commit(d.oid)::float8 as commits
       from pg_database d cross join lateral (
         select coalesce(sum(calls), 0)::float8 as statements, coalesce(sum(wal_bytes), 0)::float8 as "statementWalBytes"
         from pg_stat_statements where dbid = d.oid and query not like '%/* meter */%') s
       where datname = current_database()`,
    );
    return rows[0] as Counters;
  }

  /** Buffers that all statements hit or read so far, in this database. */
  async buffers(): Promise<number> {
    const { rows } = await this.#client.query<{ n: number }>(
      `select /* meter */ coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as n
       from pg_stat_statements where query not like '%/* meter */%'
         and dbid = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0]?.n ?? Number.NaN;
  }

  /** All tables but the system's own. Vacuum counts dead rows anew, so these are estimates of the moment. */
  async tables(): Promise<TableCounts> {
    const { rows } = await this.#client.query<TableCounts>(
      `select /* meter */ coalesce(sum(pg_total_relation_size(relid)), 0)::float8 as bytes,
         coalesce(sum(n_dead_tup), 0)::float8 as "deadTuples",
         coalesce(sum(n_tup_upd), 0)::float8 as updates, coalesce(sum(n_tup_hot_upd), 0)::float8 as "hotUpdates"
       from pg_stat_user_tables`,
    );
    return rows[0] as TableCounts;
  }

  /** One number by a statement that is not counted among the system's. */
  async number(sql: string): Promise<number> {
    const { rows } = await this.#client.query<{ n: number | null }>(
      `select /* meter */ n from (${sql}) counted`,
    );
    return rows[0]?.n ?? Number.NaN;
  }

  /** A statement that is not measured: preparing tables, or disturbing a system. */
  async run(sql: string): Promise<void> {
    await this.#client.query(`/* meter */ ${sql}`);
  }

  /** Drops what the server knows of this database's statements: it remembers so many, and evicts others for them. */
  async forget(): Promise<void> {
    await this.#client.query(
      `select pg_stat_statements_reset(0, oid, 0) from pg_database where datname = current_database()`,
    );
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
