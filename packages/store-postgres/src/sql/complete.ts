import type { Names } from "../names.ts";
import { type Statement, statement } from "./statement.ts";

/**
 * Completes a run in the transaction it is sent in; see `migrations/0001-initial/complete.ts`.
 * Index: `queue_pkey (job_id)`. Parameters: 1 worker · 2 job id · 3 run count · 4 note · 5 attachment.
 */
export function complete(n: Names): Statement {
  return statement(
    "complete",
    `select ${n.of("complete_v1")}($1::int4, $2::uuid, $3::int4, $4::text, $5::text::jsonb)::text`,
  );
}
