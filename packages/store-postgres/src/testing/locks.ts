import type { JobId } from "@venturi/core";
import type pg from "pg";

/** How a transaction can lock a row. */
export type RowLock = "for update" | "for no key update" | "for share" | "for key share";

/** Holds a lock on the rows of jobs until a piece of work is done, in a transaction that then ends. */
export async function whileLocked<T>(
  pool: pg.Pool,
  ids: readonly JobId[],
  work: () => Promise<T>,
  { lock = "for update", end = "rollback" }: { lock?: RowLock; end?: "commit" | "rollback" } = {},
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const sql = `select 1 from venturi_queue where venturi_ulid(job_id) = any ($1) ${lock}`;
    await client.query(sql, [ids]);
    return await work();
  } finally {
    await client.query(end);
    client.release();
  }
}
