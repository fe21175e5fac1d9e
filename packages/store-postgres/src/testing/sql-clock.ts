import type pg from "pg";

/** The database clock of a test, which stands still until it is moved. */
export interface SqlClock {
  /** Moves it, in milliseconds; returns where it stands, in epoch milliseconds. */
  advance(ms: number): Promise<number>;
  now(): Promise<number>;
}

/** Replaces the clock of a test's database by one that the test moves. */
export async function stopSqlClock(pool: pg.Pool): Promise<SqlClock> {
  await pool.query(
    `create table if not exists venturi_test_clock as select date_trunc('second', now()) as at`,
  );
  await pool.query(`create or replace function venturi_clock() returns timestamptz
    language sql stable parallel safe as 'select at from public.venturi_test_clock'`);
  const advance = async (ms: number) => {
    const { rows } = await pool.query(
      `update venturi_test_clock set at = at + make_interval(secs => $1::float8 / 1000)
      returning (extract(epoch from at) * 1000)::float8 as ms`,
      [ms],
    );
    return rows[0].ms;
  };
  return { advance, now: () => advance(0) };
}
