import { Buffer } from "node:buffer";

/**
 * JSON text as jsonb would give it back: of a name that stands twice the last value, names in order of their length
 * and then of their bytes, numbers without a negative zero.
 */
export function toStoredJson(text: string): string {
  return JSON.stringify(ordered(JSON.parse(text)));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const names = Object.keys(value).map((name) => ({ name, bytes: Buffer.from(name) }));
  names.sort((a, b) => a.bytes.length - b.bytes.length || Buffer.compare(a.bytes, b.bytes));
  const copy: Record<string, unknown> = Object.create(null);
  for (const { name } of names) copy[name] = ordered((value as Record<string, unknown>)[name]);
  return copy;
}
