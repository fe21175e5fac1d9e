import { type Names as CoreNames, qualifiedName, quoteIdentifier } from "@venturi/core";

/** Every database name of one queue, quoted and qualified. Identifiers reach SQL through here and nowhere else. */
export interface Names extends CoreNames {
  /** `"schema"."prefix_name"`: tables, functions, views. */
  of(name: string): string;
  /** `"prefix_name"`: indexes and constraints, which live in their table's schema. */
  local(name: string): string;
  /** The schema itself, quoted. */
  readonly quotedSchema: string;
  /** The LISTEN channel, quoted as an identifier. */
  readonly channel: string;
  /** A value as an SQL string literal, for the few places that take no parameters (DDL). */
  literal(value: string): string;
  /** What stands before and behind the body of a function: nothing that a name in it could hold. */
  readonly body: string;
}

/** Names for a prefix and a schema that have been validated. */
export function createNames({ prefix, schema }: CoreNames): Names {
  return {
    prefix,
    schema,
    quotedSchema: quoteIdentifier(schema),
    of: (name) => qualifiedName({ prefix, schema }, name),
    local: (name) => quoteIdentifier(`${prefix}_${name}`),
    channel: quoteIdentifier(prefix),
    literal,
    body: bodyQuote(schema),
  };
}

/** Read alike whatever `standard_conforming_strings` says. */
function literal(value: string): string {
  const quoted = `'${value.replaceAll("'", "''")}'`;
  return value.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

function bodyQuote(schema: string): string {
  let tag = "fn";
  while (schema.includes(`$${tag}$`)) tag += "_";
  return `$${tag}$`;
}
