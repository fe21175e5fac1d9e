import type { Names } from "../names.ts";
import { lengthMs } from "./statement.ts";

/**
 * Columns of the part of a claim that comes before its walks: when they begin, and the last number that a row had got
 * by then. What has a lower one and is not seen is not there, or is committed later.
 */
export function began(n: Names): string {
  return `pg_catalog.clock_timestamp() as began_at, pg_catalog.pg_sequence_last_value(${n.literal(n.of("queue_seq_seq"))}::regclass) as last_seq`;
}

/** What {@link began} found, in one row (`w`) from the part `kind`, and how many kinds were looked at: those that are not paused. */
export const beganOnce =
  "(select min(p.began_at) as began_at, min(p.last_seq) as last_seq, count(*)::int4 as kinds from kind p) w";

/**
 * How long the walks took, in milliseconds without planning and network, and the rest of {@link beganOnce}. Columns
 * behind all that walks.
 */
export const walked = `${lengthMs("pg_catalog.clock_timestamp() - w.began_at")} as walk_ms, w.last_seq::float8 as last_seq, w.kinds`;
