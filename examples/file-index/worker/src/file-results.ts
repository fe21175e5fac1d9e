import type pg from "pg";

/** What became of a file; all but `failing` are final. */
type FileState = "indexed" | "failing" | "given-up" | "vanished";

export interface FileResult {
  readonly scan: string;
  readonly path: string;
  readonly folder: string;
  readonly state: FileState;
  readonly bytes: number | null;
  readonly sha256: string | null;
  readonly type: string | null;
  readonly lines: number | null;
  readonly words: number | null;
  readonly reason: string | null;
  readonly runs: number;
}

const maxBatch = 500;

/** A run may repeat, so its result replaces what an earlier run of the same file left. */
const upsert = `
  insert into file_index_files as kept
    (scan, path_hash, folder_hash, path, state, bytes, sha256, type, lines, words, reason, runs, worker)
  select scan, sha256(convert_to(path, 'UTF8')), sha256(convert_to(folder, 'UTF8')), path, state,
         bytes, sha256, type, lines, words, reason, runs, $2
    from jsonb_to_recordset($1::text::jsonb) as result
      (scan text, path text, folder text, state text, bytes bigint, sha256 text, type text,
       lines bigint, words bigint, reason text, runs int)
   order by 1, 2
  on conflict (scan, path_hash) do update
    set state = excluded.state, bytes = excluded.bytes, sha256 = excluded.sha256,
        type = excluded.type, lines = excluded.lines, words = excluded.words,
        reason = excluded.reason, runs = excluded.runs, worker = excluded.worker,
        recorded_at = statement_timestamp()
`;

interface Waiting {
  readonly result: FileResult;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes results in batches that form by themselves: while one statement runs, the next one's rows
 * pile up. `save` resolves once the row is committed.
 */
export class FileResults {
  readonly #pool: pg.Pool;
  readonly #worker: string;
  #pile: Waiting[] = [];
  #isWriting = false;

  constructor(pool: pg.Pool, worker: string) {
    this.#pool = pool;
    this.#worker = worker;
  }

  save(result: FileResult): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pile.push({ result, resolve, reject });
      if (this.#isWriting) return;
      this.#isWriting = true;
      setImmediate(() => void this.#write());
    });
  }

  async #write(): Promise<void> {
    while (this.#pile.length > 0) {
      const batch = this.#pile.splice(0, maxBatch);
      // One row a file: a statement cannot update the same row twice.
      const rows = new Map(batch.map(({ result }) => [`${result.scan}\n${result.path}`, result]));
      try {
        const text = JSON.stringify([...rows.values()]);
        await this.#pool.query({
          name: "file_results",
          text: upsert,
          values: [text, this.#worker],
        });
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isWriting = false;
  }
}
