import { VenturiError } from "./errors.ts";
import { type CopyRules, copyAsJson } from "./json-copy.ts";

/** How deep arrays and objects may be nested; far below what PostgreSQL's and JavaScript's stacks bear. */
export const MAX_JSON_DEPTH = 1_000;
/** The longest JSON text, in UTF-16 units: even at three bytes each it stays below jsonb's limit of 256 MB. */
export const MAX_JSON_LENGTH = 67_108_864;
/** The most parts, which are values and every 16 characters of text: stops a graph of shared branches from exploding. */
export const MAX_JSON_PARTS = 4_194_304;

/**
 * A value as JSON text that decodes to exactly what the value said, or `serialization` naming the path.
 *
 * Refused: BigInt, NaN, ±Infinity, functions, symbols, undefined at the top, U+0000 and lone surrogates (in keys
 * too), cycles, invalid dates, binary data, and built-in objects whose content JSON would lose, such as Map and Set.
 * By the rules of JSON: `toJSON` is honoured (a `Date` becomes its ISO text), a member that is undefined is left
 * out, an array element that is undefined or missing becomes null, −0 becomes 0, an instance of a class becomes its
 * own enumerable properties, and symbol keys are left out.
 *
 * `root` names the value in messages, `owner` whose it is. No message contains a part of the value.
 */
export function encodeJson(value: unknown, root: string, owner?: string): string {
  const text = encodePlain(value) ?? encodeWithCare(value, root, owner);
  if (text.length <= MAX_JSON_LENGTH) return text;
  throw tooLarge(root, owner);
}

/**
 * The value of JSON text that a store returned; a key `__proto__` becomes an ordinary member.
 *
 * Throws `serialization` for text that is not JSON.
 */
export function decodeJson(text: string, root: string, owner?: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The engine's message quotes the text, which may hold secrets: neither it nor its error is passed on.
    throw new VenturiError(
      "serialization",
      `${subject(root, owner)} cannot be read: the stored text is not JSON`,
      { path: root },
    );
  }
}

/** The text of a value made of nothing but plain JSON, as nearly all are; undefined for any other. */
function encodePlain(value: unknown): string | undefined {
  try {
    const copier = new PlainCopier();
    const copy = copier.copy(value, 0);
    if (copier.parts > MAX_JSON_PARTS) return undefined;
    const text = JSON.stringify(copy);
    // JSON.stringify writes U+0000 and lone surrogates as escapes; harmless ones are sorted out with care.
    return text.includes("\\u") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Leads to a second look, with care, as does whatever a getter throws. */
const notPlain = new Error("not plain JSON");

/** Copies plain JSON, so that what is checked is what is written, also where a getter answers differently each time. */
class PlainCopier {
  parts = 0;

  copy(value: unknown, depth: number): unknown {
    this.parts += 1;
    switch (typeof value) {
      case "string":
        this.parts += value.length >>> 4;
        return value;
      case "boolean":
        return value;
      case "number":
        if (Number.isFinite(value)) return value;
        throw notPlain;
      case "object":
        return value === null ? null : this.#copyParts(value, depth);
      case "undefined":
        if (depth > 0) return value;
        throw notPlain;
      default:
        throw notPlain;
    }
  }

  #copyParts(value: object, depth: number): unknown {
    if (depth >= MAX_JSON_DEPTH || this.parts > MAX_JSON_PARTS) throw notPlain;
    const prototype: unknown = Object.getPrototypeOf(value);
    const members = value as Record<string, unknown>;
    if (members["toJSON"] !== undefined) throw notPlain;
    if (Array.isArray(value)) {
      const { length } = value;
      if (prototype !== Array.prototype || length > MAX_JSON_PARTS) throw notPlain;
      const items: unknown[] = [];
      for (let index = 0; index < length; index += 1)
        items.push(this.copy(value[index], depth + 1));
      return items;
    }
    if (prototype !== Object.prototype && prototype !== null) throw notPlain;
    const copy: Record<string, unknown> = {};
    for (const key in members) {
      // Assigning it would set the prototype.
      if (key === "__proto__") throw notPlain;
      copy[key] = this.copy(members[key], depth + 1);
    }
    return copy;
  }
}

/** The text of any value that JSON can hold, by way of a copy; throws for one that it cannot. */
function encodeWithCare(value: unknown, root: string, owner: string | undefined): string {
  const problem: CopyRules["problem"] = (path, what, hint, options) =>
    new VenturiError(
      "serialization",
      `${subject(root, owner)} cannot be stored as JSON: ${path} ${what}; ${hint}`,
      { path, ...options },
    );
  const limits = { maxDepth: MAX_JSON_DEPTH, maxParts: MAX_JSON_PARTS };
  const copy = copyAsJson(value, { root, ...limits, problem });
  try {
    return JSON.stringify(copy);
  } catch {
    throw tooLarge(root, owner);
  }
}

function tooLarge(root: string, owner: string | undefined): VenturiError {
  return new VenturiError(
    "serialization",
    `${subject(root, owner)} is larger than ${MAX_JSON_LENGTH} characters of JSON; keep the bulk elsewhere and refer to it`,
    { path: root },
  );
}

function subject(root: string, owner: string | undefined): string {
  return owner === undefined ? `the ${root}` : `the ${root} of ${JSON.stringify(owner)}`;
}
