/** A column by its name; where a driver was told to rename columns, by its place, which it keeps. */
export function column(row: unknown, name: string, place: number): unknown {
  const columns = row as Readonly<Record<string, unknown>>;
  return name in columns ? columns[name] : Object.values(columns)[place];
}
