/** Whether a value is an array. Never throws: a proxy may have been revoked, and cannot even be asked this. */
export function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
