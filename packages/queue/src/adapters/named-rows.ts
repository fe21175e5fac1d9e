/**
 * Rows of values under the names of their columns, where these are known. Where an application has made something
 * else of the rows, the values still stand in their order.
 */
export function namedRows(rows: readonly object[], names: readonly string[] | undefined): object[] {
  return rows.map((row) => {
    const values = Object.values(row);
    if (names === undefined) return values;
    return Object.fromEntries(values.map((value, place) => [names[place], value]));
  });
}
