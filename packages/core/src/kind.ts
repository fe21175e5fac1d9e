import { invalidArgument, show } from "./errors.ts";
import { fitsCharacters, unstorableText } from "./text.ts";

/** The longest kind, in characters. */
export const MAX_KIND_CHARACTERS = 200;

const controlCharacter = /\p{Control}/u;

/** Whether a value can name a kind of job: 1 to 200 characters, none of them a control character. */
export function isKind(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    fitsCharacters(value, MAX_KIND_CHARACTERS) &&
    !controlCharacter.test(value) &&
    unstorableText(value) === null
  );
}

/** A value as a kind; throws `invalid-argument` naming `argument`. */
export function toKind<K extends string>(value: K, argument: string): K {
  if (isKind(value)) return value;
  throw invalidArgument(
    argument,
    `is not a kind (got ${show(value)})`,
    `use 1 to ${MAX_KIND_CHARACTERS} characters without control characters, such as "send_email"`,
  );
}
