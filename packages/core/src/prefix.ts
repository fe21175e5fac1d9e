import { invalidArgument } from "./errors.ts";

/** Where venturi lives in a database: every table, index, function and channel is named from the prefix. */
export interface NameOptions {
  /**
   * What every name begins with: lower-case letters, digits and underscores, a letter first; at most 39 characters.
   * @defaultValue "venturi"
   */
  readonly prefix?: string | undefined;
  /**
   * The schema of all tables and functions. `migrate` makes it where it is missing.
   * @defaultValue "public"
   */
  readonly schema?: string | undefined;
}

/** Validated names. */
export interface Names {
  readonly prefix: string;
  readonly schema: string;
}

export const DEFAULT_NAMES: Names = { prefix: "venturi", schema: "public" };

/** Leaves room for the longest name derived from a prefix within PostgreSQL's 63 bytes. */
const maxPrefixLength = 39;
const maxIdentifierBytes = 63;

/** Validates prefix and schema; throws `invalid-argument` naming the option. */
export function resolveNames(options: NameOptions = {}): Names {
  const { prefix = DEFAULT_NAMES.prefix, schema = DEFAULT_NAMES.schema } = options;
  if (typeof prefix !== "string" || !/^[a-z][a-z0-9_]*$/.test(prefix)) {
    throw invalidArgument(
      "prefix",
      "must be lower-case letters, digits and underscores, starting with a letter",
      'leave it out for "venturi"',
    );
  }
  if (prefix.length > maxPrefixLength) {
    throw invalidArgument(
      "prefix",
      `must be at most ${maxPrefixLength} characters, not ${prefix.length}`,
      "longer names derived from it would be cut off by PostgreSQL",
    );
  }
  if (typeof schema !== "string" || schema === "" || /[\0\p{Cs}]/u.test(schema)) {
    throw invalidArgument("schema", "must be the name of a schema", 'leave it out for "public"');
  }
  if (utf8Length(schema) > maxIdentifierBytes) {
    throw invalidArgument(
      "schema",
      `must be at most ${maxIdentifierBytes} bytes`,
      "PostgreSQL cuts off longer names",
    );
  }
  return { prefix, schema };
}

/** `"schema"."prefix_suffix"`, quoted: the one way a name of ours gets into a statement. */
export function qualifiedName(names: Names, suffix: string): string {
  return `${quoteIdentifier(names.schema)}.${quoteIdentifier(`${names.prefix}_${suffix}`)}`;
}

/** An identifier as PostgreSQL takes it whatever it holds. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) as number;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}
