/** The brand of `TaskError`, here because errors are described without loading its class. */
export const TASK_ERROR_BRAND = Symbol.for("venturi.task-error");

/**
 * Whether a value carries a brand: a registered symbol, so that objects made by another copy of this package are
 * recognised too. Never throws, also not for a proxy whose traps do.
 */
export function hasBrand(value: unknown, brand: symbol): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return (value as Record<symbol, unknown>)[brand] === true;
  } catch {
    return false;
  }
}
