import type pg from "pg";

/** Removes every job and worker of a test's database. Deleting is quicker than truncating while there is little. */
export async function emptyTables(pool: pg.Pool): Promise<void> {
  await pool.query(`
    delete from venturi_queue; delete from venturi_dead; delete from venturi_journal; delete from venturi_jobs;
    delete from venturi_workers; update venturi_kinds set paused_at = null where paused_at is not null`);
}
