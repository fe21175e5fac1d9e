import { invalidArgument, readArgument, show } from "./errors.ts";
import { unstorableText } from "./text.ts";

/**
 * Small text metadata of a job, such as a trace context or a request id. It is a plain object, in which even `__proto__` is
 * a name like any other.
 */
export type Headers = Readonly<Record<string, string>>;

/** The most UTF-16 units that all names and values of a job's headers may have together. */
export const MAX_HEADERS_LENGTH = 8_192;

/**
 * A checked copy of headers; null where there are none.
 *
 * Throws `invalid-argument` for null, for anything but text, U+0000, lone surrogates and more than 8,192 units in all.
 * Values are never part of the message.
 */
export function toHeaders(headers: unknown, argument = "headers"): Headers | null {
  return readArgument(argument, () => checkHeaders(headers, argument));
}

function checkHeaders(headers: unknown, argument: string): Headers | null {
  if (headers === undefined) return null;
  if (!isPlainObject(headers)) {
    throw invalidArgument(argument, `is ${show(headers)}`, "pass a plain object of strings");
  }
  const texts: [name: string, value: string][] = [];
  let length = 0;
  for (const [name, value] of Object.entries(headers)) {
    checkText(name, argument, "has a name that ");
    const member = `${argument}[${show(name)}]`;
    if (typeof value !== "string") {
      throw invalidArgument(member, `is not a string (got ${typeof value})`, "convert or omit it");
    }
    checkText(value, member, "");
    length += name.length + value.length;
    texts.push([name, value]);
  }
  if (length > MAX_HEADERS_LENGTH) {
    throw invalidArgument(
      argument,
      `has ${length} characters in all, more than ${MAX_HEADERS_LENGTH}`,
      "put what is large into the payload",
    );
  }
  return texts.length === 0 ? null : toPlain(texts);
}

function checkText(text: string, argument: string, what: string): void {
  const problem = unstorableText(text);
  if (problem === null) return;
  throw invalidArgument(argument, `${what}${problem}`, "remove or encode it");
}

const noHeaders: Headers = Object.freeze({});

/** Headers as a store returns them, from JSON text or an object; empty for what holds none. */
export function readHeaders(stored: string | Headers | null): Headers {
  if (stored === null) return noHeaders;
  const headers: unknown = typeof stored === "string" ? JSON.parse(stored) : stored;
  // Whatever somebody has written into the row by hand: handlers get text by name.
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return noHeaders;
  return toPlain(Object.entries(headers).filter(([, value]) => typeof value === "string"));
}

/** Assigned, a member `__proto__` would be lost. */
function toPlain(entries: readonly (readonly [name: string, value: string])[]): Headers {
  return Object.fromEntries(entries);
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm has a prototype of its own, which ends the chain all the same.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
