/**
 * A member of whatever it may be. Never throws: undefined where there are no members, and where reading one throws, as
 * a getter or a proxy can make it.
 */
export function readMember(from: unknown, name: string | number): unknown {
  if ((typeof from !== "object" && typeof from !== "function") || from === null) return undefined;
  try {
    return (from as Readonly<Record<string | number, unknown>>)[name];
  } catch {
    return undefined;
  }
}
