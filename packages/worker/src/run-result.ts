import {
  cleanText,
  describeFailure,
  FAR_FUTURE_MS,
  isDefect,
  isOutcome,
  isTaskError,
  MAX_NOTE_LENGTH,
  type Outcome,
  type RunResult,
  readMember,
  type TaskError,
} from "@venturi/core";
import type { PanicPolicy } from "./options.ts";

const completed: RunResult = Object.freeze({ type: "completed", note: null });

/** What a handler's return value says; null for a value that is no outcome. */
export function resultOfReturn(returned: unknown): RunResult | null {
  if (returned === undefined) return completed;
  if (!isOutcome(returned)) return null;
  try {
    return readOutcome(returned);
  } catch {
    return null;
  }
}

/** Only what `Outcome` can have made: one put together by hand may say anything. */
function readOutcome(outcome: Outcome): RunResult | null {
  const { type, note } = outcome;
  if (note !== null && typeof note !== "string") return null;
  if (type === "completed") return { type, note: toNote(note) };
  if (type !== "paused") return null;
  const { delayMs, runAt } = outcome;
  const isTimely = isMs(delayMs) && (runAt === null || isMs(runAt));
  return isTimely ? { type, delayMs, runAt, note: toNote(note) } : null;
}

function isMs(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= FAR_FUTURE_MS;
}

function toNote(note: string | null): string | null {
  return note === null ? null : cleanText(note, MAX_NOTE_LENGTH);
}

/** What anything that a handler threw says. Never throws. */
export function resultOfThrow(thrown: unknown, panicPolicy: PanicPolicy): RunResult {
  const { note, detail } = describeFailure(thrown);
  const isDecision = isTaskError(thrown);
  const { permanent, afterMs } = isDecision ? readTaskError(thrown) : undecided;
  const isBug = !isDecision && isDefect(thrown);
  return {
    type: "failed",
    note,
    detail: JSON.stringify(detail),
    permanent: permanent ?? (isBug && panicPolicy === "dead"),
    afterMs,
    discardCarry: isBug,
  };
}

interface Disposition {
  readonly permanent: boolean | null;
  readonly afterMs: number | null;
}

const undecided: Disposition = Object.freeze({ permanent: null, afterMs: null });

/** Only what `TaskError` can have made. Never throws. */
function readTaskError(error: TaskError): Disposition {
  try {
    const { permanent, afterMs } = error;
    return { permanent: permanent === true, afterMs: isMs(afterMs) ? afterMs : null };
  } catch {
    return undecided;
  }
}

/**
 * What a handler came to that completed its run in a transaction and returned, should that transaction not have
 * committed. Its changes to the carry may have counted on the commit, so they are discarded.
 */
export const uncommitted: RunResult = Object.freeze({
  type: "failed",
  note: "completed in a transaction that did not commit",
  detail: null,
  permanent: false,
  afterMs: null,
  discardCarry: true,
});

/** A failure of the data, not of the handler, which was not called: dead at once. */
export function undecodable(error: unknown): RunResult {
  const { note, detail } = describeFailure(error);
  return {
    type: "failed",
    note,
    detail: JSON.stringify(detail),
    permanent: true,
    afterMs: null,
    discardCarry: true,
  };
}

const maxDepth = 20;

/**
 * Whether a handler gave up because it was told to: it threw an error named AbortError, or one whose chain of causes
 * holds the reason of its signal. Never throws.
 */
export function isAbort(thrown: unknown, reason: unknown): boolean {
  if (readMember(thrown, "name") === "AbortError") return true;
  let error = thrown;
  for (let depth = 0; depth < maxDepth && error !== undefined; depth += 1) {
    if (error === reason) return true;
    error = readMember(error, "cause");
  }
  return false;
}
