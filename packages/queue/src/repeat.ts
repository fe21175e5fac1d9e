import { isVenturiError, type VenturiError } from "@venturi/core";

/** For how long a statement that loses conflicts is repeated, in milliseconds, before its error is passed on. */
const maxRepeatMs = 10_000;
const firstDelayMs = 5;

/**
 * Serialization failure, deadlock, the same id at the same moment in another call, a pending job that has changed since
 * a merge function saw it: rolled back, nothing written.
 */
function isConflict(error: unknown): error is VenturiError {
  if (!isVenturiError(error) || !error.isRetryable) return false;
  return error.code === "merge" || ["40001", "40P01", "23505"].includes(error.sqlState ?? "");
}

/** The error of a statement inside a transaction that an earlier error has already ended. */
const abortedTransaction = "25P02";

export interface RepeatOptions {
  /**
   * From when the ten seconds count, on the clock of `performance.now()`.
   * @defaultValue now
   */
  readonly startedAt?: number;
  /**
   * The longest delay between two attempts, in milliseconds.
   * @defaultValue 1,000
   */
  readonly maxDelayMs?: number;
  /**
   * How often the statement is tried at least: a single attempt may have waited ten seconds for a lock.
   * @defaultValue 3
   */
  readonly leastAttempts?: number;
}

/**
 * Repeats a statement that lost a conflict with another transaction, with growing jittered delays
 * for up to ten seconds. The statement is told the conflict before it.
 *
 * A connection may turn out to be inside a transaction that its owner began: then nothing can be
 * repeated, and the conflict itself is what the caller has to know.
 */
export async function repeatConflicts<T>(
  statement: (conflict: unknown) => Promise<T>,
  { startedAt = performance.now(), maxDelayMs = 1_000, leastAttempts = 3 }: RepeatOptions = {},
): Promise<T> {
  let conflict: unknown;
  let attempts = 0;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, maxDelayMs)) {
    try {
      return await statement(conflict);
    } catch (error) {
      const sqlState = isVenturiError(error) ? error.sqlState : undefined;
      if (sqlState === abortedTransaction && conflict !== undefined) throw conflict;
      if (!isConflict(error)) throw error;
      conflict = error;
    }
    attempts += 1;
    // Anywhere up to the delay: of many that lose the same conflict, few should come back together.
    const jitteredMs = delayMs * Math.random();
    const isOver = performance.now() - startedAt + jitteredMs > maxRepeatMs;
    if (isOver && attempts >= leastAttempts) throw conflict;
    await new Promise((resolve) => setTimeout(resolve, jitteredMs));
  }
}
