import { hasBrand } from "./brand.ts";
import { type Duration, differenceMs, type Instant, toEpochMs } from "./duration.ts";
import { invalidArgument, show } from "./errors.ts";
import { MAX_NOTE_LENGTH } from "./failure-note.ts";
import { cleanText } from "./text.ts";

const outcomeBrand: unique symbol = Symbol.for("venturi.outcome");

interface Branded {
  readonly [outcomeBrand]: true;
  /** For the journal; null: none. */
  readonly note: string | null;
}

export interface CompletedOutcome extends Branded {
  readonly type: "completed";
}

export interface PausedOutcome extends Branded {
  readonly type: "paused";
  /** Milliseconds from the database's now until the job is due again; 0 with `runAt`. */
  readonly delayMs: number;
  /** When the job is due again, in epoch milliseconds; null: after `delayMs`. */
  readonly runAt: number | null;
}

/** How a handler says that its run ended well; made by {@link Outcome}. */
export type Outcome = CompletedOutcome | PausedOutcome;

const completedWithoutNote = completed(null);

function completed(note: string | null): CompletedOutcome {
  return Object.freeze({ [outcomeBrand]: true as const, type: "completed", note });
}

function paused(delayMs: number, runAt: number | null, note: string | null): PausedOutcome {
  return Object.freeze({ [outcomeBrand]: true as const, type: "paused", delayMs, runAt, note });
}

/** Makes the outcomes that a handler returns. A note goes into the journal, cut to 4,096 characters. */
export const Outcome = Object.freeze({
  /** The job is completed; returning nothing says the same. */
  completed: (note?: string): Outcome =>
    note === undefined ? completedWithoutNote : completed(toNote(note)),
  /**
   * The job is pending again and due after `duration`; its carry is kept. That is no failure. A negative number means 0,
   * and `Infinity` the year 9999. Throws `invalid-argument` for what is no duration.
   */
  pauseFor: (duration: Duration, note?: string): Outcome =>
    paused(differenceMs(duration, "pauseFor duration"), null, toNote(note)),
  /** As `pauseFor`, but due at a moment. Throws `invalid-argument` for an invalid `Date`. */
  pauseUntil: (date: Instant, note?: string): Outcome =>
    paused(0, toEpochMs(date, "pauseUntil date"), toNote(note)),
});

/** Whether a value is an outcome, even one made by another copy of this package. */
export function isOutcome(value: unknown): value is Outcome {
  return hasBrand(value, outcomeBrand);
}

function toNote(note: unknown): string | null {
  if (note === undefined) return null;
  if (typeof note === "string") return cleanText(note, MAX_NOTE_LENGTH);
  throw invalidArgument("note", `is not text (got ${show(note)})`, "pass a string or leave it out");
}
