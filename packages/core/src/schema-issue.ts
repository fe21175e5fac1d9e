import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { ValidationIssue } from "./errors.ts";
import { cleanText } from "./text.ts";

const maxIssues = 20;
const maxMessageLength = 300;
const maxLeaves = 1_000;
/** Enough of a long text to recognise it by, also where a library has shortened it. */
const leafLength = 8;

/**
 * What a schema refused, without what it was given: schema libraries quote the refused value in their messages
 * ('Invalid email: Received "…"'), and error messages and journal notes end up in logs.
 *
 * So the part of a message that tells the received value is cut off (", received …", ", actual …", "(was …"), the type
 * of what was received is told instead, and a message that still holds a piece of the input is dropped altogether.
 */
export function describeIssues(
  issues: readonly StandardSchemaV1.Issue[],
  input: unknown,
): readonly ValidationIssue[] {
  if (!Array.isArray(issues)) throw new TypeError("the issues are no array");
  return issues.slice(0, maxIssues).map((issue: StandardSchemaV1.Issue) => {
    const path = (issue.path ?? []).map(toKey);
    return { message: describe(issue.message, valueAt(input, path), input), path };
  });
}

function describe(message: string, received: unknown, input: unknown): string {
  const kept = cleanText(String(message).replace(toldValue, ""), maxMessageLength).trim();
  if (kept === "" || quotes(kept, input)) return `is not valid (got ${typeName(received)})`;
  return /\bexpected\b/i.test(kept) ? `${kept} (got ${typeName(received)})` : kept;
}

/**
 * Where valibot, zod, arktype, effect and yup begin to tell what they were given, and all that follows. The words alone
 * do not: "no payment was received" is somebody's own message.
 */
const toldValue = new RegExp(
  [
    /[,;:(]\s*(?:(?:but|instead)\s+)?(?:received|actual|got)\b/, // "…, received 5", "…: Received …", "…, actual …"
    /\b(?:but|instead)\s+(?:received|got|was)\b/,
    /\(was\b/,
    /(?:[,;:]\s*)?(?:\bbut\s+)?\bthe final value was\b/,
    /\b(?:received|actual|got)\s*[:"'`{[]/,
  ]
    .map(({ source }) => `(?:${source}).*$`)
    .join("|"),
  "is",
);

/** Whether a message holds a piece of the input: a text of three or more characters, or a number of as many digits. */
export function quotes(message: string, input: unknown): boolean {
  const open: unknown[] = [input];
  for (let seen = 0; open.length > 0 && seen < maxLeaves; seen += 1) {
    const value = open.pop();
    if (typeof value === "object" && value !== null) {
      for (const key of Object.keys(value).slice(0, maxLeaves)) {
        open.push((value as Record<string, unknown>)[key]);
      }
    } else if (typeof value === "string" || typeof value === "number") {
      const leaf = String(value).trim().slice(0, leafLength);
      if (leaf.length > 2 && message.includes(leaf)) return true;
    }
  }
  return false;
}

/** The part of a value at a path; undefined where there is none. */
export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  let part = value;
  for (const key of path) {
    if (typeof part !== "object" || part === null || !Object.hasOwn(part, key)) return undefined;
    part = (part as Record<string | number, unknown>)[key];
  }
  return part;
}

function toKey(segment: PropertyKey | StandardSchemaV1.PathSegment): string | number {
  const key: unknown = typeof segment === "object" && segment !== null ? segment.key : segment;
  if (typeof key === "number") return key;
  return typeof key === "object" || typeof key === "function" ? "?" : String(key);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
