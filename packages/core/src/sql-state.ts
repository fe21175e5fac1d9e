/** Classes of conditions that pass by themselves: connection exceptions and exhausted resources. */
const retryableClasses = new Set(["08", "53"]);

/**
 * Serialization failure, unknown statement completion, deadlock, lock not available, query cancelled, server shut
 * down, crashed or starting, session ended by a timeout of its own, read-only server (a failover).
 */
const retryableStates = new Set([
  "40001",
  "40003",
  "40P01",
  "55P03",
  "57014",
  "57P01",
  "57P02",
  "57P03",
  "57P05",
  "25P03",
  "25P04",
  "25006",
]);

/** Whether the same statement may succeed when it is sent again, judged by its SQLSTATE. */
export function isRetryableSqlState(sqlState: string): boolean {
  return retryableStates.has(sqlState) || retryableClasses.has(sqlState.slice(0, 2));
}
