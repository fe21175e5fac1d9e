import type pg from "pg";

/** How far scans have come, by their results. */
export interface ScanProgress {
  readonly indexed: number;
  /** Files that will not be indexed any more. */
  readonly givenUp: number;
  /** Files that failed and will be tried again. */
  readonly failing: number;
  /** Runs beyond each file's first. */
  readonly retries: number;
  readonly folders: number;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
}

export async function readProgress(pool: pg.Pool, scans: readonly string[]): Promise<ScanProgress> {
  const { rows } = await pool.query<ScanProgress>(
    `select count(*) filter (where state = 'indexed')::float8 as indexed,
            count(*) filter (where state in ('given-up', 'vanished'))::float8 as "givenUp",
            count(*) filter (where state = 'failing')::float8 as failing,
            coalesce(sum(runs - 1), 0)::float8 as retries,
            coalesce(sum(bytes), 0)::float8 as bytes,
            coalesce(sum(lines), 0)::float8 as lines,
            coalesce(sum(words), 0)::float8 as words,
            (select count(*) from file_index_folders where scan = any($1))::float8 as folders
       from file_index_files where scan = any($1)`,
    [scans],
  );
  const [progress] = rows;
  if (progress === undefined) throw new Error("an aggregate returns one row");
  return progress;
}
