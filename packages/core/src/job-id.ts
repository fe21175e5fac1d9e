import { TIME_MAX, ulid } from "ulid";
import { invalidArgument, show, type VenturiError } from "./errors.ts";

/** A job's id: a ULID in its canonical form, 26 upper-case characters whose order is that of their making. */
export type JobId = string;

const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const base16 = "0123456789abcdef";
const jobIdPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

// The conversions run once per job at enqueue and at claim; ulid's own take 2 to 3 µs, these a tenth of that.

/** Two hexadecimal digits for every byte. */
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
/** Two characters for every 10 bits. */
const pairs = Array.from({ length: 1024 }, (_, n) => base32.charAt(n >> 5) + base32.charAt(n & 31));

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
  if (!jobIdPattern.test(id)) throw notAJobId(id, "id");
  const head = id.slice(0, 18);
  if (head !== latestHead) {
    latestHeadUuid = headUuid(head);
    latestHead = head;
  }
  const f = bits32(id, 18);
  const g = bits32(id, 22);
  return (
    `${latestHeadUuid}${hex[f >> 12]}${hex[(f >> 4) & 255]}` +
    `${hex[((f & 15) << 4) | (g >> 16)]}${hex[(g >> 8) & 255]}${hex[g & 255]}`
  );
}

// Ids that were made within a millisecond begin alike: converting the beginning once halves the time.
let latestHead = "";
let latestHeadUuid = "";

/** The first 11 bytes, from the first 18 characters: two make the first byte, every further four make 20 bits. */
function headUuid(head: string): string {
  const a = (value32(head, 0) << 5) | value32(head, 1);
  const b = bits32(head, 2);
  const c = bits32(head, 6);
  const d = bits32(head, 10);
  const e = bits32(head, 14);
  return (
    `${hex[a]}${hex[b >> 12]}${hex[(b >> 4) & 255]}${hex[((b & 15) << 4) | (c >> 16)]}-` +
    `${hex[(c >> 8) & 255]}${hex[c & 255]}-${hex[d >> 12]}${hex[(d >> 4) & 255]}-` +
    `${hex[((d & 15) << 4) | (e >> 16)]}${hex[(e >> 8) & 255]}-${hex[e & 255]}`
  );
}

/** The id that the database holds as this uuid. Throws `invalid-argument`. */
export function fromUuid(uuid: string): JobId {
  if (!uuidPattern.test(uuid)) {
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
  return (
    `${pairs[a]}${pairs[b >> 10]}${pairs[b & 1023]}${pairs[c >> 10]}${pairs[c & 1023]}` +
    `${pairs[d >> 10]}${pairs[d & 1023]}${pairs[e >> 10]}${pairs[e & 1023]}` +
    `${pairs[f >> 10]}${pairs[f & 1023]}${pairs[g >> 10]}${pairs[g & 1023]}`
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
