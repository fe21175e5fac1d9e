import type { Names } from "../names.ts";
import { dearMs } from "../walk-budget.ts";
import { lengthMs } from "./statement.ts";

/**
 * With more kinds than this `claimAll` would be the slower statement, since it looks up each kind among all of them. A
 * claim that looks at each kind behind a mark of its own would be slower too than one look at all kinds without marks.
 */
export const fewKinds = 100;

/**
 * Columns of the part of a claim that comes before its walks: the highest `seq` that a row had got by then (a row with a
 * lower one that the walks do not see is not there, or is committed later), and when the walks begin. In this order: the
 * sequence may have to be waited for, which does not count as walking.
 */
export function walkStartColumns(n: Names): string {
  return `pg_catalog.pg_sequence_last_value(${n.literal(n.of("queue_seq_seq"))}::regclass) as last_seq, pg_catalog.clock_timestamp() as began_at`;
}

/** The {@link walkStartColumns} of the part `kind` in one row (`w`), with the number of kinds that were looked at. */
export const walkStart =
  "(select min(p.began_at) as began_at, min(p.last_seq) as last_seq, count(*)::int4 as kinds from kind p) w";

/**
 * Members of `info` about the walks: how long they took, in milliseconds without planning and network, and what
 * {@link walkStart} says. To be evaluated after everything that walks.
 */
export const walkMembers = {
  walk_ms: lengthMs("pg_catalog.clock_timestamp() - w.began_at"),
  last_seq: "w.last_seq::float8",
  kinds: "w.kinds",
} as const;

/** What the walks of a claim have found, as SQL expressions that yield `jsonb`. */
export interface FoundParts {
  /** The first waiting row of each kind and tier that has any. */
  readonly ready: string;
  /** The first due row of each among the scheduled. */
  readonly due: string;
  /** A condition under which it is told; where the walks took long it is told in any case. */
  readonly when: string;
}

/**
 * The member `found` of `info`: what the walks have found, or null where it is not told. A kind and tier that is neither
 * in `ready` nor of a paused kind has nothing that could be claimed.
 */
export function foundMember({ ready, due, when }: FoundParts): string {
  const isDear = `(cardinality($3::int4[]) <= ${fewKinds} and pg_catalog.clock_timestamp() - w.began_at > interval '${dearMs} ms')`;
  const paused =
    "(select coalesce(jsonb_agg(u.id), '[]') from unnest($3::int4[]) u(id) where u.id <> all (array(select p.kind_id from kind p)))";
  return `case when ${when} or ${isDear}
    then jsonb_build_object('ready', ${ready}, 'due', ${due}, 'paused', ${paused}) end`;
}
