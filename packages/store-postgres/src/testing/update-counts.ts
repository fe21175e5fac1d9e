import type pg from "pg";

interface UpdateCounts {
  readonly all: number;
  /** Of these, how many touched no index. */
  readonly hot: number;
}

/** The updates that a table has seen; waits until they have been counted, which takes a while after they were made. */
export async function updatesOf(
  pool: pg.Pool,
  table: string,
  atLeast = 0,
  withinMs = 20_000,
): Promise<UpdateCounts> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const { rows } = await pool.query<UpdateCounts>(
      `select n_tup_upd::float8 as all, n_tup_hot_upd::float8 as hot
      from pg_stat_user_tables where relname = $1`,
      [table],
    );
    const [counts] = rows;
    if (counts !== undefined && counts.all >= atLeast) return counts;
    if (performance.now() > giveUpAt)
      throw new Error(`${counts?.all} updates of ${table} were counted, not ${atLeast}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
