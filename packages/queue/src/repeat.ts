import { isVenturiError } from "@venturi/core";

/** How long a statement that lost a conflict is repeated before its error is passed on. */
const maxRepeatMs = 10_000;
const firstDelayMs = 5;
const maxDelayMs = 1_000;

/** Serialization failure, deadlock, the same id at the same moment in another call: rolled back, nothing written. */
const conflicts = new Set(["40001", "40P01", "23505"]);

/** The error of a statement inside a transaction that an earlier error has already ended. */
const abortedTransaction = "25P02";

/**
 * Repeats a statement that lost a conflict with another transaction, with growing jittered delays
 * for up to ten seconds.
 *
 * A connection may turn out to be inside a transaction that its owner began: then nothing can be
 * repeated, and the conflict itself is what the caller has to know.
 */
export async function repeatConflicts<T>(statement: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  let conflict: unknown;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, maxDelayMs)) {
    try {
      return await statement();
    } catch (error) {
      const sqlState = isVenturiError(error) ? error.sqlState : undefined;
      if (sqlState === abortedTransaction && conflict !== undefined) throw conflict;
      const again = isVenturiError(error) && error.isRetryable;
      if (!again || sqlState === undefined || !conflicts.has(sqlState)) throw error;
      conflict = error;
    }
    const jitteredMs = delayMs * (0.5 + Math.random() / 2);
    if (performance.now() - startedAt + jitteredMs > maxRepeatMs) throw conflict;
    await new Promise((resolve) => setTimeout(resolve, jitteredMs));
  }
}
