import type { Names } from "../names.ts";
import { lengthMs } from "./statement.ts";

/**
 * Columns of the part of a claim that comes before its walks: when they begin, and the last number that a row had got
 * by then. What has a lower one and is not seen is not there, or is committed later.
 */
export function began(n: Names): string {
  return `pg_catalog.clock_timestamp() as began_at, pg_catalog.pg_sequence_last_value(${n.literal(n.of("queue_seq_seq"))}::regclass) as last_seq`;
}

/**
 * How long the walks took, in milliseconds without planning and network, and what {@link began} found: the number,
 * and how many kinds were looked at, which are those that are not paused. Columns behind all that walks.
 */
export function walked(part: "kind" | "pair"): string {
  return `${lengthMs(`pg_catalog.clock_timestamp() - (select min(w.began_at) from ${part} w)`)} as walk_ms,
  (select min(w.last_seq) from ${part} w)::float8 as last_seq, (select count(distinct w.kind_id) from ${part} w)::int4 as kinds`;
}
