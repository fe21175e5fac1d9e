import { hasBrand, TASK_ERROR_BRAND } from "./brand.ts";
import type { FailureDetail } from "./journal.ts";
import { readMember } from "./read-member.ts";
import { cleanText } from "./text.ts";

/** The longest note of a journal entry, in UTF-16 units. */
export const MAX_NOTE_LENGTH = 4_096;
const maxStackLength = 8_192;
const maxNameLength = 200;

/** A failure as the journal keeps it. */
export interface Failure {
  /** Never empty, at most 4,096 characters, storable as it is. */
  readonly note: string;
  /** Plain strings, at most 9 kB. */
  readonly detail: FailureDetail;
}

/** Turns whatever a handler threw into what the journal keeps. Never throws, whatever was thrown. */
export function describeFailure(thrown: unknown): Failure {
  const origin = failureOrigin(thrown);
  const name = cleanText(failureName(origin), maxNameLength);
  const code = text(readMember(origin, "code"));
  const stack = text(readMember(origin, "stack"));
  return {
    note: cleanText(failureMessage(thrown), MAX_NOTE_LENGTH),
    detail: {
      name,
      ...(code !== "" && { code: cleanText(code, maxNameLength) }),
      ...(stack !== "" && { stack: cleanText(stack, maxStackLength) }),
    },
  };
}

/** What a thrown value says went wrong; never empty, never throws. */
export function failureMessage(thrown: unknown): string {
  if (typeof thrown === "string") {
    if (thrown.trim() !== "") return thrown;
    return `${thrown === "" ? "an empty" : "a blank"} string was thrown`;
  }
  if (!isObject(thrown)) return `${String(thrown)} was thrown`;
  const message = text(readMember(thrown, "message"));
  if (message.trim() !== "") return message;
  const parts = innerMessages(thrown);
  if (parts.length > 0) return parts.join("; ");
  if (typeof thrown === "function") return "a function was thrown";
  return `${failureName(thrown)} without a message`;
}

/** An AggregateError often says nothing itself, such as that of a connection tried on several addresses. */
function innerMessages(thrown: object): string[] {
  const messages: string[] = [];
  const errors = readMember(thrown, "errors");
  for (let index = 0; index < 10; index += 1) {
    const message = text(readMember(readMember(errors, index), "message"));
    if (message.trim() !== "") messages.push(message.slice(0, MAX_NOTE_LENGTH));
  }
  return messages;
}

/** A `TaskError` made of an error only says how to treat it: that error is where the failure began. */
function failureOrigin(thrown: unknown): unknown {
  const cause = hasBrand(thrown, TASK_ERROR_BRAND) ? readMember(thrown, "cause") : undefined;
  return isObject(cause) ? cause : thrown;
}

function failureName(thrown: unknown): string {
  if (!isObject(thrown)) return typeof thrown;
  const names = [
    readMember(thrown, "name"),
    readMember(readMember(thrown, "constructor"), "name"),
  ].map(text);
  return names.find((name) => name.trim() !== "") ?? "Object";
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
