import type { Names } from "../names.ts";
import { dearMs } from "../walk-budget.ts";
import { lengthMs } from "./statement.ts";

/**
 * With more kinds than these the smaller statement, which looks up each of them among all, would be the slower one;
 * and so would be a claim that looks at each of them behind a mark of its own, rather than once at all that have none.
 */
export const fewKinds = 100;

/**
 * Columns of the part of a claim that comes before its walks: the last number that a row had got by then, and when
 * they begin. What has a lower number and is not seen is not there, or is committed later. In this order: the sequence
 * may have to be waited for, which is no walking.
 */
export function began(n: Names): string {
  return `pg_catalog.pg_sequence_last_value(${n.literal(n.of("queue_seq_seq"))}::regclass) as last_seq, pg_catalog.clock_timestamp() as began_at`;
}

/** What {@link began} found, in one row (`w`) from the part `kind`, and how many kinds were looked at. */
export const beganOnce =
  "(select min(p.began_at) as began_at, min(p.last_seq) as last_seq, count(*)::int4 as kinds from kind p) w";

/**
 * How long the walks took, in milliseconds without planning and network, and the rest of {@link beganOnce}. Members of
 * `info` behind all that walks.
 */
export const walked = {
  walk_ms: lengthMs("pg_catalog.clock_timestamp() - w.began_at"),
  last_seq: "w.last_seq::float8",
  kinds: "w.kinds",
} as const;

/** What the walks of a claim have found, as expressions that yield `jsonb`. */
export interface Told {
  /** The first row that waits of each kind and tier that has any. */
  readonly ready: string;
  /** The first of each that is due, of the scheduled. */
  readonly due: string;
  /** When to tell it; where walking was dear it is told in any case. */
  readonly when: string;
}

/**
 * What a claim has found, where somebody wants to know; else null. All that is neither in `ready` nor paused has
 * nothing that could be claimed.
 */
export function told({ ready, due, when }: Told): string {
  const isDear = `(cardinality($3::int4[]) <= ${fewKinds} and pg_catalog.clock_timestamp() - w.began_at > interval '${dearMs} ms')`;
  const paused =
    "(select coalesce(jsonb_agg(u.id), '[]') from unnest($3::int4[]) u(id) where u.id <> all (array(select p.kind_id from kind p)))";
  return `case when ${when} or ${isDear}
    then jsonb_build_object('ready', ${ready}, 'due', ${due}, 'paused', ${paused}) end`;
}
