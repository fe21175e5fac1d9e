/** Whether a value, an object or a function, has all of these methods. */
export function hasMethods(value: unknown, names: readonly string[]): value is object {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const members = value as Readonly<Record<string, unknown>>;
  return names.every((name) => typeof members[name] === "function");
}
