import { invalidArgument, show } from "@venturi/core";

/** The largest count that a store can be asked for: databases count in 32 bits. */
const mostCount = 2_147_483_647;

/** Whether a value is a whole number from 1 to 2,147,483,647. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= mostCount;
}

/** A value as a count, a whole number from 1 to 2,147,483,647; throws `invalid-argument` naming `argument`. */
export function toCount(value: unknown, argument: string): number {
  if (isCount(value)) return value;
  throw invalidArgument(
    argument,
    `is not a count (got ${show(value)})`,
    `pass a whole number from 1 to ${mostCount}`,
  );
}

/** The same, but null is taken too; `none` says in the message what null means. */
export function toCountOrNull(value: unknown, argument: string, none: string): number | null {
  if (value === null) return null;
  if (isCount(value)) return value;
  throw invalidArgument(
    argument,
    `is not a count (got ${show(value)})`,
    `pass a whole number from 1 to ${mostCount}, or ${none}`,
  );
}
