import { type Backoff, retryDelay } from "./backoff.ts";
import { MAX_NOTE_LENGTH } from "./failure-note.ts";
import type { JobId } from "./job-id.ts";
import { cleanText } from "./text.ts";

/** How a run ends in the journal. */
export type SettlementOutcome = "completed" | "paused" | "retried" | "dead" | "released";

/** The end of one run, as a store writes it. */
export interface Settlement {
  readonly jobId: JobId;
  /** The run that ends. The settlement applies only if this run still holds the claim. */
  readonly runCount: number;
  readonly outcome: SettlementOutcome;
  /** For `paused` and `retried`: milliseconds from the store's clock until the job is due again. */
  readonly delayMs: number;
  /** For `paused`: an absolute due time in epoch milliseconds, instead of `delayMs`. */
  readonly runAt: number | null;
  /** JSON text of the carry to store; null: what is stored stays. */
  readonly carry: string | null;
  readonly note: string | null;
  /** JSON text. */
  readonly attachment: string | null;
  /** JSON text: name, code and stack of the error. */
  readonly detail: string | null;
}

/** What a handler came to, before the task's backoff and backstop are applied. */
export type RunResult =
  | { readonly type: "completed"; readonly note: string | null }
  | {
      readonly type: "paused";
      readonly delayMs: number;
      readonly runAt: number | null;
      readonly note: string | null;
    }
  | {
      readonly type: "failed";
      readonly note: string;
      readonly detail: string | null;
      /** The job is dead at once, whatever its backstop. */
      readonly permanent: boolean;
      /** The handler's own delay before the next attempt, in milliseconds; null: the backoff's. */
      readonly afterMs: number | null;
      /** The run's changes to the carry cannot be trusted, for example after a defect, and are discarded. */
      readonly discardCarry: boolean;
    }
  | { readonly type: "released"; readonly note: string | null };

/** How failures of a job are treated. */
export interface SettlementPolicy {
  readonly backoff: Backoff;
  /** How much of a delay jitter may take away, from 0 to 1. */
  readonly jitterFraction: number;
  /** How many failures make the job dead; null: never. */
  readonly backstop: number | null;
}

/** The run that is being settled. */
export interface RunToSettle {
  readonly jobId: JobId;
  readonly runCount: number;
  /** Failures before this run. */
  readonly failureCount: number;
  /** JSON text of the carry as the handler left it; called only where the outcome stores it, may throw. */
  readonly encodeCarry: () => string | null;
  /** JSON text of the attachment; called once, may throw. */
  readonly encodeAttachment: () => string | null;
}

/** Decides what is written about a run. Never throws: data that cannot be stored changes the outcome instead. */
export function decideSettlement(
  run: RunToSettle,
  result: RunResult,
  policy: SettlementPolicy,
): Settlement {
  let attachment: string | null = null;
  let remark: string | null = null;
  try {
    attachment = run.encodeAttachment();
  } catch {
    remark = "attachment could not be serialized";
  }
  const { note } = result;
  switch (result.type) {
    case "completed":
    case "released":
      return settlement(run, attachment, result.type, join(note, remark));
    case "paused": {
      const carry = tryEncode(run);
      if (carry === unencodable)
        return settlement(run, attachment, "dead", join(carryNote, remark));
      const { delayMs, runAt } = result;
      return settlement(run, attachment, "paused", join(note, remark), { delayMs, runAt, carry });
    }
    case "failed": {
      const { detail } = result;
      const attempt = Math.max(run.failureCount, 0) + 1;
      if (result.permanent || reachesBackstop(attempt, policy.backstop))
        return settlement(run, attachment, "dead", join(note, remark), { detail });
      const carry = result.discardCarry ? null : tryEncode(run);
      if (carry === unencodable) {
        const both = join(join(carryNote, note), remark);
        return settlement(run, attachment, "dead", both, { detail });
      }
      const delayMs =
        result.afterMs ?? retryDelay(policy.backoff, policy.jitterFraction, attempt, run.jobId);
      return settlement(run, attachment, "retried", join(note, remark), { delayMs, carry, detail });
    }
  }
}

type Rest = Partial<Pick<Settlement, "delayMs" | "runAt" | "carry" | "detail">>;
const nothingElse: Rest = {};

/** Makes the object at once rather than by spreading others, since there is one for each run. */
function settlement(
  { jobId, runCount }: RunToSettle,
  attachment: string | null,
  outcome: SettlementOutcome,
  note: string | null,
  { delayMs = 0, runAt = null, carry = null, detail = null }: Rest = nothingElse,
): Settlement {
  return { jobId, runCount, outcome, delayMs, runAt, carry, note, attachment, detail };
}

/** Whether a job with this many failures has had its last chance. */
export function reachesBackstop(failureCount: number, backstop: number | null): boolean {
  return backstop !== null && failureCount >= backstop;
}

const carryNote = "carry could not be serialized";
const unencodable = Symbol("unencodable");

function tryEncode(run: RunToSettle): string | null | typeof unencodable {
  try {
    return run.encodeCarry();
  } catch {
    return unencodable;
  }
}

/** Joins two notes within the length of one: the longer is cut, so that a remark of venturi's own is never lost. */
function join(first: string | null, second: string | null): string | null {
  if (first === null || second === null) return first ?? second;
  const left = MAX_NOTE_LENGTH - "; ".length;
  return first.length > second.length
    ? `${cleanText(first, left - second.length)}; ${second}`
    : `${first}; ${cleanText(second, left - first.length)}`;
}
