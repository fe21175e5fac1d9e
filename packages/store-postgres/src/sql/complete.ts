import type { Names } from "../names.ts";
import { type Statement, statement } from "./statement.ts";

/**
 * Completes a run in the transaction it is sent in; see `migrations/0001-initial/complete.ts`.
 * Types are named with their schema: the transaction is the application's, and so is its search path.
 * Index: `queue_pkey (job_id)`. Parameters: 1 worker · 2 job id · 3 run count · 4 note · 5 attachment.
 */
export function complete(n: Names): Statement {
  return statement(
    "complete",
    `select ${n.of("complete_v1")}($1::pg_catalog.int4, $2::pg_catalog.uuid, $3::pg_catalog.int4,
      $4::pg_catalog.text, $5::pg_catalog.text::pg_catalog.jsonb)::pg_catalog.text`,
  );
}
