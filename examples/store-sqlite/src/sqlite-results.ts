import type {
  App,
  FileResult,
  FolderPage,
  FolderTotals,
} from "@venturi-examples/file-index-worker";
import type BetterSqlite3 from "better-sqlite3";

const tables = `
create table if not exists files (
  scan text, path text, folder text, state text, bytes integer, sha256 text, type text, lines integer, words integer,
  reason text, runs integer, primary key (scan, path)
);
create table if not exists folders (
  scan text, path text, files integer, indexed integer, bytes integer, lines integer, words integer, primary key (scan, path)
)`;

/** Where the handlers of the file index keep their results, in the same file as their jobs. */
export function sqliteResults(db: BetterSqlite3.Database): App {
  db.exec(tables);
  const saveFile = db.prepare<FileResult>(
    `insert or replace into files (scan, path, folder, state, bytes, sha256, type, lines, words, reason, runs)
    values (@scan, @path, @folder, @state, @bytes, @sha256, @type, @lines, @words, @reason, @runs)`,
  );
  const countFinal = db.prepare<[string, string], { n: number }>(
    "select count(*) as n from files where scan = ? and folder = ? and state <> 'failing'",
  );
  const sumPage = db.prepare<[string, string, string, number], FolderPage>(
    `select count(*) as rows, coalesce(max(path), '') as after, count(*) filter (where state = 'indexed') as indexed,
      coalesce(sum(bytes), 0) as bytes, coalesce(sum(lines), 0) as lines, coalesce(sum(words), 0) as words
    from (select * from files where scan = ? and folder = ? and path > ? order by path limit ?)`,
  );
  const saveFolder = db.prepare(
    "insert or replace into folders (scan, path, files, indexed, bytes, lines, words) values (?, ?, ?, ?, ?, ?, ?)",
  );
  return {
    files: {
      save: async (result) => {
        saveFile.run(result);
      },
    },
    folders: {
      countFinal: async (scan, folder) => countFinal.get(scan, folder)?.n ?? 0,
      sumPage: async (scan, folder, after, limit) => {
        const page = sumPage.get(scan, folder, after, limit);
        if (page === undefined) throw new Error("an aggregate returns one row");
        return page.rows === 0 ? { ...page, after } : page;
      },
      save: async (scan, folder, files, totals: FolderTotals) => {
        const { indexed, bytes, lines, words } = totals;
        saveFolder.run(scan, folder, files, indexed, bytes, lines, words);
      },
    },
  };
}
