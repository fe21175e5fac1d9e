import type { VenturiError } from "./errors.ts";
import { showPath } from "./json-path.ts";
import { unstorableText } from "./text.ts";

/** What a copy may hold, and how a refusal is told. */
export interface CopyRules {
  readonly root: string;
  readonly maxDepth: number;
  /** Values, and every 16 characters of text. */
  readonly maxParts: number;
  readonly problem: (
    path: string,
    what: string,
    hint: string,
    options?: { readonly cause: unknown },
  ) => VenturiError;
}

/**
 * A copy of a value made of plain arrays and prototype-less objects, every part of it looked at once: what can be
 * written where a value has `toJSON` methods, class instances or doubtful text. Throws `rules.problem` for the first
 * part that JSON or jsonb cannot hold, and for one that throws when it is read.
 */
export function copyAsJson(value: unknown, rules: CopyRules): unknown {
  return new JsonCopier(rules).copyAll(value);
}

class JsonCopier {
  readonly #rules: CopyRules;
  /** Where the copier is, also after it has thrown. */
  readonly #path: (string | number)[] = [];
  readonly #ancestors = new Set<object>();
  #parts = 0;
  #refusal: VenturiError | undefined;

  constructor(rules: CopyRules) {
    this.#rules = rules;
  }

  copyAll(value: unknown): unknown {
    try {
      this.#count(1);
      return this.#copy(value, "");
    } catch (error) {
      if (error === this.#refusal) throw error;
      throw this.#refuse("threw when it was read", "see the cause", { cause: error });
    }
  }

  #copy(value: unknown, key: string): unknown {
    if (typeof value !== "object" || value === null) return this.#checkScalar(value);
    if (ArrayBuffer.isView(value)) {
      throw this.#refuse("is binary data", "store it elsewhere, or use base64 text");
    }
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON !== "function") return this.#copyObject(value);
    const replacement: unknown = toJSON.call(value, key);
    if (replacement === null && Object.prototype.toString.call(value) === "[object Date]") {
      throw this.#refuse("is an invalid Date", "check the date where it is made");
    }
    // As JSON.stringify does: what toJSON returned is not asked for a toJSON of its own.
    return typeof replacement === "object" && replacement !== null
      ? this.#copyObject(replacement)
      : this.#checkScalar(replacement);
  }

  #checkScalar(value: unknown): unknown {
    switch (typeof value) {
      case "string":
        this.#count(value.length >>> 4);
        return this.#checkText(value);
      case "number":
        if (Number.isFinite(value)) return value;
        throw this.#refuse(`is ${value}`, "JSON has finite numbers only, so use null or a string");
      case "bigint":
        throw this.#refuse("is a BigInt", "use a string, or a number where it is small enough");
      case "undefined":
        throw this.#refuse("is undefined", "use null, or an empty object");
      case "function":
      case "symbol":
        throw this.#refuse(`is a ${typeof value}`, "only data can be stored");
      default:
        return value;
    }
  }

  #copyObject(value: object): unknown {
    if (this.#ancestors.has(value)) {
      throw this.#refuse("refers back to a value that contains it", "break the cycle");
    }
    if (this.#ancestors.size >= this.#rules.maxDepth) {
      throw this.#refuse(`is more than ${this.#rules.maxDepth} levels deep`, "flatten it");
    }
    this.#ancestors.add(value);
    const copy = Array.isArray(value) ? this.#copyArray(value) : this.#copyMembers(value);
    this.#ancestors.delete(value);
    return copy;
  }

  #copyArray(value: readonly unknown[]): unknown[] {
    this.#count(value.length);
    return Array.from({ length: value.length }, (_, index) => this.#copyItem(value, index) ?? null);
  }

  #copyMembers(value: object): object {
    const tag = Object.prototype.toString.call(value);
    if (tag !== "[object Object]") {
      const hint = "JSON would lose what is in it, so use a plain object or array";
      throw this.#refuse(`is a ${tag.slice(8, -1)}`, hint);
    }
    const copy: Record<string, unknown> = Object.create(null);
    const keys = Object.keys(value);
    this.#count(keys.length);
    for (const key of keys) {
      const item = this.#copyItem(value, key);
      if (item !== undefined) copy[key] = item;
    }
    return copy;
  }

  /** The copy of an element or member; undefined stays undefined. */
  #copyItem(parent: object, key: string | number): unknown {
    this.#path.push(key);
    if (typeof key === "string") this.#checkText(key, "has a name that");
    const item = (parent as Record<string | number, unknown>)[key];
    const copy = item === undefined ? undefined : this.#copy(item, String(key));
    this.#path.pop();
    return copy;
  }

  #checkText(text: string, subject = "is text that"): string {
    const problem = unstorableText(text);
    if (problem === null) return text;
    throw this.#refuse(`${subject} ${problem}`, "jsonb cannot hold that, so remove or encode it");
  }

  #count(parts: number): void {
    this.#parts += parts;
    if (this.#parts <= this.#rules.maxParts) return;
    const limit = `${this.#rules.maxParts} parts (values, and every 16 characters of text)`;
    throw this.#refuse(`makes the whole exceed ${limit}`, "keep the bulk elsewhere, refer to it");
  }

  #refuse(what: string, hint: string, options?: { readonly cause: unknown }): VenturiError {
    this.#refusal = this.#rules.problem(
      showPath(this.#rules.root, this.#path),
      what,
      hint,
      options,
    );
    return this.#refusal;
  }
}
