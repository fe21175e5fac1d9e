/** Rows of values, under the names of their columns where these are known. */
export function namedRows(
  rows: readonly (readonly unknown[])[],
  names: readonly string[] | undefined,
): readonly unknown[] {
  if (names === undefined) return rows;
  return rows.map((values) => Object.fromEntries(values.map((value, at) => [names[at], value])));
}
