/** What PostgreSQL text and jsonb refuse: U+0000, and surrogates without their other half. */
const unstorable = /[\0\p{Surrogate}]/u;
const everyUnstorable = /[\0\p{Surrogate}]/gu;

/** Why PostgreSQL could not store this text, or null. */
export function unstorableText(text: string): string | null {
  if (!unstorable.test(text)) return null;
  return text.includes("\0") ? "contains U+0000" : "contains half of a surrogate pair";
}

/** The text with what PostgreSQL refuses replaced by U+FFFD, cut to `limit` UTF-16 units. */
export function cleanText(text: string, limit: number): string {
  const cut = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  return unstorable.test(cut) ? cut.replace(everyUnstorable, "\ufffd") : cut;
}

/** Whether the text has at most `limit` characters, counted as PostgreSQL counts them (code points). */
export function fitsCharacters(text: string, limit: number): boolean {
  if (text.length <= limit) return true;
  if (text.length > limit * 2) return false;
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters <= limit;
}

/** A few letters and digits that tell a few texts apart: their FNV-1a hash. */
export function shortHash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1)
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value.toString(36);
}
