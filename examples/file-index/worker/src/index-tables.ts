import type pg from "pg";

/**
 * The example's own tables, in the database that holds the jobs. A path may be longer than an index
 * entry, so rows are found by its hash.
 */
const tables = `
  create table if not exists file_index_files (
    scan text not null,
    path_hash bytea not null,
    folder_hash bytea not null,
    path text not null,
    state text not null,
    bytes bigint,
    sha256 text,
    type text,
    lines bigint,
    words bigint,
    reason text,
    runs int not null,
    worker text not null,
    recorded_at timestamptz not null default statement_timestamp(),
    primary key (scan, path_hash)
  );
  create index if not exists file_index_files_folder on file_index_files (scan, folder_hash, path_hash);
  create table if not exists file_index_folders (
    scan text not null,
    path_hash bytea not null,
    path text not null,
    files int not null,
    indexed int not null,
    bytes bigint not null,
    lines bigint not null,
    words bigint not null,
    recorded_at timestamptz not null default statement_timestamp(),
    primary key (scan, path_hash)
  );
`;

/** Makes the tables where they are missing; safe from several processes at once. */
export async function createIndexTables(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(hashtext('file_index tables'))");
    await client.query(tables);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
