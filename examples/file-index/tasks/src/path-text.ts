import { isUtf8 } from "node:buffer";

/**
 * A path as JSON can hold it. A file's name may be any bytes but NUL and "/", also such as are no
 * UTF-8; "%", control characters and stray bytes become "%" and two hexadecimal digits, everything
 * else stays legible.
 */
export function pathToText(path: Buffer): string {
  const whole = isUtf8(path);
  // As latin1 every byte is one character, so that stray ones can be told from the rest.
  const text = path.toString(whole ? "utf8" : "latin1");
  const special = whole ? /[%\p{Cc}]/gu : /[%\p{Cc}\x80-\xff]/gu;
  return text.replace(special, (character) => escapeBytes(character, whole ? "utf8" : "latin1"));
}

/** The bytes of a path that {@link pathToText} wrote. */
export function textToPath(text: string): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (const match of text.matchAll(/%([0-9A-F]{2})/g)) {
    parts.push(Buffer.from(text.slice(from, match.index)));
    parts.push(Buffer.from(match[1] ?? "", "hex"));
    from = match.index + match[0].length;
  }
  parts.push(Buffer.from(text.slice(from)));
  return Buffer.concat(parts);
}

function escapeBytes(character: string, encoding: "utf8" | "latin1"): string {
  const hex = Buffer.from(character, encoding).toString("hex").toUpperCase();
  return hex.replace(/../g, "%$&");
}
