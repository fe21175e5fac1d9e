import type pg from "pg";

export interface FolderTotals {
  readonly indexed: number;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
}

/** Where a sum has got to; `after` is the last file's hash in hexadecimal, "" before the first. */
export interface FolderPage extends FolderTotals {
  readonly rows: number;
  readonly after: string;
}

interface PageRow {
  readonly rows: number;
  readonly after: string | null;
  readonly indexed: number;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
}

/** What the files of a folder came to. Numbers come as float8, which `pg` hands over as numbers. */
export class FolderResults {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** How many files of the folder will not change any more. */
  async countFinal(scan: string, folder: string): Promise<number> {
    const { rows } = await this.#pool.query<{ count: number }>({
      name: "folder_count",
      text: `select count(*)::float8 as count from file_index_files
              where scan = $1 and folder_hash = sha256(convert_to($2, 'UTF8')) and state <> 'failing'`,
      values: [scan, folder],
    });
    return rows[0]?.count ?? 0;
  }

  /** Sums the next files of the folder, at most `limit`. */
  async sumPage(scan: string, folder: string, after: string, limit: number): Promise<FolderPage> {
    const { rows } = await this.#pool.query<PageRow>({
      name: "folder_page",
      text: `select count(*)::float8 as rows, max(encode(path_hash, 'hex')) as after,
                    count(*) filter (where state = 'indexed')::float8 as indexed,
                    coalesce(sum(bytes), 0)::float8 as bytes,
                    coalesce(sum(lines), 0)::float8 as lines,
                    coalesce(sum(words), 0)::float8 as words
               from (select path_hash, state, bytes, lines, words from file_index_files
                      where scan = $1 and folder_hash = sha256(convert_to($2, 'UTF8'))
                        and path_hash > decode($3, 'hex')
                      order by path_hash limit $4) as page`,
      values: [scan, folder, after, limit],
    });
    const page = rows[0];
    if (page === undefined) throw new Error("an aggregate returns one row");
    return { ...page, after: page.after ?? after };
  }

  async save(scan: string, folder: string, files: number, totals: FolderTotals): Promise<void> {
    await this.#pool.query({
      name: "folder_save",
      text: `insert into file_index_folders (scan, path_hash, path, files, indexed, bytes, lines, words)
             values ($1, sha256(convert_to($2, 'UTF8')), $2, $3, $4, $5, $6, $7)
             on conflict (scan, path_hash) do update
               set files = excluded.files, indexed = excluded.indexed, bytes = excluded.bytes,
                   lines = excluded.lines, words = excluded.words,
                   recorded_at = statement_timestamp()`,
      values: [scan, folder, files, totals.indexed, totals.bytes, totals.lines, totals.words],
    });
  }
}
