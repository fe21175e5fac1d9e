import { pastPooler } from "@venturi-tooling/testing/pooler";
import pg from "pg";

export interface TableAccesses {
  readonly table: string;
  /** Rows read by walks over the whole table. */
  readonly walked: number;
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
}

/** What a piece of work does to the tables of the queue, in a transaction of its own that is rolled back. */
export async function tableAccesses(
  url: string,
  work: (client: pg.Client) => Promise<void>,
): Promise<readonly TableAccesses[]> {
  // Of a new connection, past a pooler: the counts of one that has been used would hold what it did before.
  const client = new pg.Client({ connectionString: pastPooler(url) });
  await client.connect();
  try {
    await client.query("begin");
    await work(client);
    const { rows } =
      await client.query(`select substr(relname, 9) as table, seq_tup_read::float8 as walked,
        n_tup_ins::float8 as inserted, n_tup_upd::float8 as updated, n_tup_del::float8 as deleted
      from pg_stat_xact_user_tables where relname like 'venturi\\_%' order by relname`);
    await client.query("rollback");
    return rows;
  } finally {
    await client.end();
  }
}
