import { invalidArgument, show, type VenturiError } from "./errors.ts";
import { fitsCharacters, unstorableText } from "./text.ts";

/** What makes two jobs of a kind the same work. Kept as text, so 1, 1n and "1" are one key. */
export type DedupKey = string | number | bigint;

/** The longest dedup key, in characters. */
export const MAX_DEDUP_KEY_CHARACTERS = 512;

/**
 * A dedup key as text, or null where there is none (null and undefined); the empty string is a key. `kind` is told in
 * messages, the key itself never.
 *
 * Throws `invalid-argument` for a number that is not a safe integer, more than 512 characters, U+0000, a lone
 * surrogate and any other type.
 */
export function encodeDedupKey(key: unknown, kind?: string): string | null {
  switch (typeof key) {
    case "string":
      return checkText(key, kind);
    case "number":
      if (Number.isSafeInteger(key)) return String(key);
      throw refuse(
        Number.isInteger(key) ? "is beyond the safe integers" : "is not a whole number",
        "different numbers could become one key, so use a string or a bigint",
        kind,
      );
    case "bigint":
      return checkText(String(key), kind);
    case "undefined":
      return null;
    default:
      if (key === null) return null;
      throw refuse(
        `is ${show(key)}`,
        "use a string, a whole number or a bigint; null or undefined for no key",
        kind,
      );
  }
}

function checkText(text: string, kind: string | undefined): string {
  if (!fitsCharacters(text, MAX_DEDUP_KEY_CHARACTERS)) {
    const what = `is longer than ${MAX_DEDUP_KEY_CHARACTERS} characters`;
    throw refuse(what, "use a hash of what makes the job unique", kind);
  }
  const problem = unstorableText(text);
  if (problem === null) return text;
  throw refuse(problem, "PostgreSQL text cannot hold it, so encode the key", kind);
}

function refuse(what: string, hint: string, kind: string | undefined): VenturiError {
  const owner = kind === undefined ? "" : `of ${JSON.stringify(kind)} `;
  return invalidArgument("dedupKey", `${owner}${what}`, hint);
}
