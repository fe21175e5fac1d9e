import type { Names } from "../names.ts";
import { epochMs, type Statement, statement } from "./statement.ts";

/**
 * The journal of one job in order, or its latest entries. Index: `journal_pkey (job_id, entry_no)`, read backwards.
 * Parameters: 1 job id · 2 limit or null.
 */
export function readJournal(n: Names): Statement {
  return statement(
    "read_journal",
    `select e.job_id::text as job_id, k.name as kind, e.run_no, ${n.of("outcome")}(e.outcome) as outcome, e.note,
    e.attachment::text as attachment, e.detail::text as detail, w.name as worker,
    ${epochMs("e.started_at")} as started_ms, ${epochMs("e.recorded_at")} as recorded_ms
  from (select * from ${n.of("journal")} where job_id = $1::uuid order by entry_no desc limit $2::int4) e
  left join ${n.of("kinds")} k on k.id = e.kind_id
  left join ${n.of("workers")} w on w.id = e.worker_id
  order by e.entry_no`,
  );
}
