import type BetterSqlite3 from "better-sqlite3";

/** Opens a database of `better-sqlite3`. */
export type OpenSqlite = (file: string) => BetterSqlite3.Database;

/** The driver, or why it is not there: it is compiled where it is installed, which not every machine can. */
export async function loadSqlite(): Promise<OpenSqlite | { readonly reason: string }> {
  try {
    const { default: Sqlite } = await import("better-sqlite3");
    new Sqlite(":memory:").close();
    return (file) => new Sqlite(file);
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}
