import { shortHash } from "@venturi/core";
import { noHint } from "../hint.ts";
import type { Names } from "../names.ts";

/** One SQL statement with its parameters' order fixed by the file that writes it. */
export interface Statement {
  /** Names the prepared statement; differs where the text differs, since one connection may serve several queues. */
  readonly name: string;
  readonly text: string;
  /**
   * Whether it does a bounded amount of work and passes over what others have locked, so that a live server answers soon.
   * @defaultValue false
   */
  readonly isPrompt?: boolean;
  /**
   * How long a prompt statement may go unanswered at first, in milliseconds.
   * @defaultValue 8,000
   */
  readonly patienceMs?: number;
}

/** The statements that workers depend on. All others may take as long as they must: they wait for locks, or depend on a filter. */
const promptVerbs: ReadonlySet<string> = new Set([
  "beat",
  "start_worker",
  "stop_worker",
  "kinds",
  "kinds_new",
  "claim",
  "claim_all",
  "claim_hinted",
  "claimed_bodies",
  "promote",
  "hand_back",
  "settle",
  "settle_completed",
  "verdicts",
  "extend_lease",
  "find_stale",
  "find_orphans",
  "recover",
  "give_up_workers",
]);

/** Names a statement after its verb and its text. */
export function statement(verb: string, text: string): Statement {
  return { name: `venturi_${verb}_${shortHash(text)}`, text, isPrompt: promptVerbs.has(verb) };
}

/** The furthest date that is stored: it round-trips through JavaScript and PostgreSQL. */
const farDate = "'9999-01-01T00:00:00Z'::timestamptz";

/** `clock + ms`, cut to the far date; `ms` is an SQL expression in milliseconds. */
export function after(n: Names, ms: string): string {
  return `least(${n.of("clock")}() + make_interval(secs => least(greatest(${ms}, 0), 3e14) / 1000), ${farDate})`;
}

/**
 * One failure more. A count that somebody has written to the end of its range by hand stays there: it must not keep a
 * run from being settled.
 */
export function oneMore(count: string): string {
  return `least(${count}, 2147483646) + 1`;
}

/** The next version of a row, from the start again after the last. */
export function nextVersion(version: string): string {
  return `${version} % 2147483647 + 1`;
}

/** An instant that is never null, brought between 1970 and the far date: an infinite one cannot be reckoned with. */
export function bounded(instant: string): string {
  return `greatest(least(${instant}, ${farDate}), 'epoch'::timestamptz)`;
}

/**
 * The moment until which a worker (`w`) counts as alive if it does not beat again. Values in its row may be absurd: one
 * such row must not make everyone's statement fail.
 */
export function silentAt(n: Names, ms = "w.worker_timeout_ms"): string {
  return `greatest(least(w.beat_at, ${n.of("clock")}()), 'epoch'::timestamptz) + make_interval(secs => least(greatest(${ms}, 0), 3e14) / 1000)`;
}

/** Milliseconds from the clock until an instant, as float8. */
export function msUntil(n: Names, instant: string): string {
  return lengthMs(`${instant} - ${n.of("clock")}()`);
}

/** Milliseconds from an instant until the clock, as float8. */
export function msSince(n: Names, instant: string): string {
  return lengthMs(`${n.of("clock")}() - ${instant}`);
}

/**
 * An interval in milliseconds. `date_part` and not `extract`, which computes in exact decimals at several times the
 * cost; rounded to the microseconds that an interval has.
 */
export function lengthMs(interval: string): string {
  return `(round(date_part('epoch', ${interval}) * 1e6) / 1e3)`;
}

/** Epoch milliseconds of an instant as float8: drivers parse timestamps by settings that are not ours. */
export function epochMs(instant: string): string {
  return `(extract(epoch from ${instant}) * 1000)::float8`;
}

/**
 * Whether a row's lease (`q`) ends when the claim (`u`) says; true if the claim does not say. To within 2 ms: the claim's
 * answer was cut to whole milliseconds.
 */
export function isLeaseOf(claim: string, row: string): string {
  return `(${claim}.lease_ends_ms is null or abs(${epochMs(`${row}.lease_expires_at`)} - ${claim}.lease_ends_ms) < 2)`;
}

/** An instant from epoch milliseconds, given as an SQL expression. */
export function fromEpochMs(ms: string): string {
  return `to_timestamp(${ms} / 1000)`;
}

/**
 * Joins a row to a job's id in a way that the planner can only carry out by looking the id up. With `=` it would consider
 * reading the whole table for a hash or merge join, which seems cheap while the last vacuum has found the table empty.
 */
export function lookedUp(column: string, id: string): string {
  return `${column} = any (array[${id}])`;
}

/** The columns that tell the place of a row that was put back (`p`): its kind, its tier and, if it is due, its `seq`. */
export const oldPlace = "p.kind_id, p.priority::int4 as priority, p.seq::float8 as seq";

/**
 * All rows that were held (`h`), with those of them that were put back (`p`). A full join, though none of `p` is missing in
 * `h`: it is never done as a nested loop, which the planner would consider for the few rows that it expects.
 */
export const heldAndPutBack = "held h full join pended p on p.job_id = h.job_id";

/**
 * Array parameters, side by side as rows. Each is wrapped in a subquery, so that the planner does not know its length: to
 * look up each of a thousand ids seems slower than a walk over a table that was empty at its last vacuum.
 */
export function rows(...parameters: readonly string[]): string {
  return `unnest(${parameters.map((parameter) => `(select ${parameter})`).join(", ")})`;
}

/**
 * An expression that notifies workers that something may be claimed, if `condition` holds and notifications are on.
 * It is evaluated once a statement if the condition refers to none of the statement's rows.
 */
export function notify(n: Names, condition: string): string {
  return `(select pg_notify(${n.literal(n.prefix)}, '${noHint}') from ${n.of("meta")} m where m.notify and ${condition})`;
}

/**
 * The moment by which every sleeping worker looks for jobs again: what is due before is worth a NOTIFY. Every worker counts
 * that has neither stopped nor been given up, however old its last beat: a clock that has just jumped makes all beats old.
 */
export function horizon(n: Names): string {
  return `(select ${after(n, "coalesce(max(w.poll_max_ms), 0)")} from ${n.of("workers")} w where w.stopping_at is null)`;
}
