import { invalidArgument, readArgument, show } from "./errors.ts";
import { unstorableText } from "./text.ts";

/**
 * Small text metadata of a job: trace context, a request id. Given as a plain object; read back on an object without
 * a prototype, so that a name such as `__proto__` is a name like any other.
 */
export type Headers = Readonly<Record<string, string>>;

/** The most that all names and values of a job's headers may have, in UTF-16 units. */
export const MAX_HEADERS_LENGTH = 8_192;

/**
 * A checked copy of headers, without a prototype; null where there are none.
 *
 * Throws `invalid-argument` for anything but text, U+0000, lone surrogates and more than 8,192 units in all. Values
 * are never part of the message.
 */
export function toHeaders(headers: unknown, argument = "headers"): Headers | null {
  return readArgument(argument, () => checkHeaders(headers, argument));
}

function checkHeaders(headers: unknown, argument: string): Headers | null {
  if (headers === undefined || headers === null) return null;
  if (!isPlainObject(headers)) {
    throw invalidArgument(argument, `is ${show(headers)}`, "pass a plain object of strings");
  }
  const copy: Record<string, string> = Object.create(null);
  let length = 0;
  for (const [name, value] of Object.entries(headers)) {
    checkText(name, argument, "has a name that ");
    const member = `${argument}[${show(name)}]`;
    if (typeof value !== "string") {
      throw invalidArgument(member, `is not a string (got ${typeof value})`, "convert or omit it");
    }
    checkText(value, member, "");
    length += name.length + value.length;
    copy[name] = value;
  }
  if (length > MAX_HEADERS_LENGTH) {
    throw invalidArgument(
      argument,
      `has ${length} characters in all, more than ${MAX_HEADERS_LENGTH}`,
      "put what is large into the payload",
    );
  }
  return length === 0 && Object.keys(copy).length === 0 ? null : copy;
}

function checkText(text: string, argument: string, what: string): void {
  const problem = unstorableText(text);
  if (problem === null) return;
  throw invalidArgument(argument, `${what}${problem}`, "remove or encode it");
}

const noHeaders: Headers = Object.freeze(Object.create(null));

/** Headers as a store returns them, from JSON text or an object, on an object without a prototype; empty for what holds none. */
export function readHeaders(stored: string | Headers | null): Headers {
  if (stored === null) return noHeaders;
  const headers: unknown = typeof stored === "string" ? JSON.parse(stored) : stored;
  // Whatever somebody has written into the row by hand: handlers get text by name.
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return noHeaders;
  const copy: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers))
    if (typeof value === "string") copy[name] = value;
  return copy;
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm has a prototype of its own, which ends the chain all the same.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
