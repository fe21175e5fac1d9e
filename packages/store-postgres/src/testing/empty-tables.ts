import type pg from "pg";

/** Removes every job, worker and kind of a test's database; numbers begin anew. */
export async function emptyTables(pool: pg.Pool): Promise<void> {
  await pool.query(
    `truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal, venturi_workers, venturi_kinds restart identity`,
  );
}
