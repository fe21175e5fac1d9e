import { TIME_MAX, ulid } from "ulid";
import { invalidArgument, show, type VenturiError } from "./errors.ts";

/** A job's id: a ULID in its canonical form, 26 upper-case characters. Ids sort by the time at which they were made. */
export type JobId = string;

const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const base16 = "0123456789abcdef";
const jobIdPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

// The conversions run once per job at enqueue, at claim and at its end; ulid's own take 2 to 3 µs, these a tenth of
// that. Each makes its text in one call: text joined from pieces would be copied again when somebody first looks at it.

/** The characters' codes by their digits' values. */
const base32Codes = Uint8Array.from(base32, (digit) => digit.charCodeAt(0));
const base16Codes = Uint8Array.from(base16, (digit) => digit.charCodeAt(0));
const hyphen = 0x2d;

/** The values of digits, as text to be indexed by a digit's character code. */
const base32Values = digitValues(base32);
const base16Values = digitValues(base16, base16.toUpperCase());

function digitValues(...alphabets: string[]): string {
  const values = new Array<number>(128).fill(0);
  for (const digits of alphabets) {
    for (let value = 0; value < digits.length; value += 1) values[digits.charCodeAt(value)] = value;
  }
  return String.fromCharCode(...values);
}

/** Whether a value is a job id in its canonical form. */
export function isJobId(value: unknown): value is JobId {
  return typeof value === "string" && jobIdPattern.test(value);
}

/** A value as a job id; throws `invalid-argument` naming `argument`. */
export function toJobId(value: unknown, argument: string): JobId {
  if (isJobId(value)) return value;
  throw notAJobId(value, argument);
}

function notAJobId(value: unknown, argument: string): VenturiError {
  return invalidArgument(
    argument,
    `is not a job id (got ${show(value)})`,
    "pass a ULID of 26 characters in upper case: the one that enqueue returned, or fromUuid(uuid)",
  );
}

/** Where ids take their time and their randomness from. */
export interface JobIdSources {
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** A number in [0, 1), from a generator that processes do not share; called 16 times per millisecond in use. */
  readonly random: () => number;
}

/**
 * Makes a generator of ids that strictly increase, also within one millisecond and when the clock steps back.
 *
 * The generator throws `invalid-argument` when `now` returns what a ULID cannot hold: NaN, or a year past 10889.
 */
export function createJobIds({ now, random }: JobIdSources): () => JobId {
  let latest = 0;
  let id = "";
  return () => {
    const time = now();
    if (!(time <= TIME_MAX)) {
      throw invalidArgument("now", `returned ${show(time)}`, "return epoch milliseconds");
    }
    const next = id === "" || time >= latest + 1 ? undefined : successor(id);
    if (next !== undefined) {
      id = next;
      return id;
    }
    // A new millisecond, or one whose random part, begun close to its end, is used up: borrow the next one.
    latest = Math.max(latest + 1, Math.trunc(time));
    id = ulid(latest, random);
    return id;
  };
}

/** The next id of the same millisecond; undefined after its last. */
function successor(id: JobId): JobId | undefined {
  for (let index = 25; index > 9; index -= 1) {
    const value = value32(id, index);
    if (value < 31) return id.slice(0, index) + base32.charAt(value + 1) + "0".repeat(25 - index);
  }
  return undefined;
}

/** The id as the database holds it, its 16 bytes as uuid text. Throws `invalid-argument`. */
export function toUuid(id: JobId): string {
  if (!isJobId(id)) throw notAJobId(id, "id");
  // Two characters make the first byte, every further four make 20 bits.
  const a = (value32(id, 0) << 5) | value32(id, 1);
  const b = bits32(id, 2);
  const c = bits32(id, 6);
  const d = bits32(id, 10);
  const e = bits32(id, 14);
  const f = bits32(id, 18);
  const g = bits32(id, 22);
  return String.fromCharCode(
    code16(a, 4),
    code16(a, 0),
    code16(b, 16),
    code16(b, 12),
    code16(b, 8),
    code16(b, 4),
    code16(b, 0),
    code16(c, 16),
    hyphen,
    code16(c, 12),
    code16(c, 8),
    code16(c, 4),
    code16(c, 0),
    hyphen,
    code16(d, 16),
    code16(d, 12),
    code16(d, 8),
    code16(d, 4),
    hyphen,
    code16(d, 0),
    code16(e, 16),
    code16(e, 12),
    code16(e, 8),
    hyphen,
    code16(e, 4),
    code16(e, 0),
    code16(f, 16),
    code16(f, 12),
    code16(f, 8),
    code16(f, 4),
    code16(f, 0),
    code16(g, 16),
    code16(g, 12),
    code16(g, 8),
    code16(g, 4),
    code16(g, 0),
  );
}

/** The id that the database holds as this uuid. Throws `invalid-argument`. */
export function fromUuid(uuid: string): JobId {
  if (typeof uuid !== "string" || !uuidPattern.test(uuid)) {
    throw invalidArgument(
      "uuid",
      `is not a uuid (got ${show(uuid)})`,
      "pass uuid text with hyphens",
    );
  }
  const a = (value16(uuid, 0) << 4) | value16(uuid, 1);
  const b = bits16(uuid, 2, 3, 4, 5, 6);
  const c = bits16(uuid, 7, 9, 10, 11, 12);
  const d = bits16(uuid, 14, 15, 16, 17, 19);
  const e = bits16(uuid, 20, 21, 22, 24, 25);
  const f = bits16(uuid, 26, 27, 28, 29, 30);
  const g = bits16(uuid, 31, 32, 33, 34, 35);
  return String.fromCharCode(
    code32(a, 5),
    code32(a, 0),
    code32(b, 15),
    code32(b, 10),
    code32(b, 5),
    code32(b, 0),
    code32(c, 15),
    code32(c, 10),
    code32(c, 5),
    code32(c, 0),
    code32(d, 15),
    code32(d, 10),
    code32(d, 5),
    code32(d, 0),
    code32(e, 15),
    code32(e, 10),
    code32(e, 5),
    code32(e, 0),
    code32(f, 15),
    code32(f, 10),
    code32(f, 5),
    code32(f, 0),
    code32(g, 15),
    code32(g, 10),
    code32(g, 5),
    code32(g, 0),
  );
}

/** The id's 16 bytes as two unsigned 64-bit numbers, the more significant first. Throws `invalid-argument`. */
export function jobIdHalves(id: JobId): readonly [high: bigint, low: bigint] {
  const digits = toUuid(id).replaceAll("-", "");
  return [BigInt(`0x${digits.slice(0, 16)}`), BigInt(`0x${digits.slice(16)}`)];
}

function value32(text: string, index: number): number {
  return base32Values.charCodeAt(text.charCodeAt(index));
}

/** The 20 bits of the four characters from `index`. */
function bits32(text: string, index: number): number {
  return (
    (value32(text, index) << 15) |
    (value32(text, index + 1) << 10) |
    (value32(text, index + 2) << 5) |
    value32(text, index + 3)
  );
}

/** The character of the digit that stands above the lowest bits of a number. */
function code32(bits: number, lowest: number): number {
  return base32Codes[(bits >> lowest) & 31] as number;
}

function value16(text: string, index: number): number {
  return base16Values.charCodeAt(text.charCodeAt(index));
}

/** The 20 bits of five hexadecimal digits, which hyphens may part. */
function bits16(text: string, i: number, j: number, k: number, l: number, m: number): number {
  return (
    (value16(text, i) << 16) |
    (value16(text, j) << 12) |
    (value16(text, k) << 8) |
    (value16(text, l) << 4) |
    value16(text, m)
  );
}

/** The character of the digit that stands above the lowest bits of a number. */
function code16(bits: number, lowest: number): number {
  return base16Codes[(bits >> lowest) & 15] as number;
}
