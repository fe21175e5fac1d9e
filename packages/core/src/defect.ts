import { readMember } from "./read-member.ts";

/**
 * Whether a thrown value shows a bug rather than the world: a ReferenceError, a SyntaxError, a failed assertion, an
 * exhausted call stack, or a TypeError that is not how `fetch` reports a network failure. Never throws.
 */
export function isDefect(thrown: unknown): boolean {
  switch (readMember(thrown, "name")) {
    case "ReferenceError":
    case "SyntaxError":
    case "AssertionError":
      return true;
    case "RangeError":
    case "InternalError":
      return stackText.test(messageOf(thrown));
    case "TypeError":
      return !isNetworkFailure(thrown);
    default:
      return readMember(thrown, "code") === "ERR_ASSERTION";
  }
}

/** What V8 and JavaScriptCore, then SpiderMonkey say when the call stack is exhausted. */
const stackText = /call stack|too much recursion/i;

/** What the implementations of `fetch` say; Node's hangs the network's error on as the cause. */
const networkText =
  /^(fetch failed|terminated|failed to fetch|load failed|networkerror\b.*|network ?error|network request failed)$/i;

/** Error codes of the operating system and of Node's HTTP client. */
const networkCode = /^(E[A-Z]+|UND_ERR_[A-Z_]+)$/;

function isNetworkFailure(thrown: unknown): boolean {
  if (networkText.test(messageOf(thrown))) return true;
  const code = readMember(readMember(thrown, "cause"), "code");
  return typeof code === "string" && networkCode.test(code);
}

function messageOf(thrown: unknown): string {
  const message = readMember(thrown, "message");
  return typeof message === "string" ? message : "";
}
