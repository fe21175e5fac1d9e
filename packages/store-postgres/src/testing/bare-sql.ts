import { fromUuid, type JobId, toUuid } from "@venturi/core";
import type pg from "pg";
import { newId } from "./store-fixture.ts";

/** What runs a statement: a pool or a client. */
export type Runner = Pick<pg.Pool, "query">;

export interface Enqueued {
  readonly ord: number;
  readonly id: JobId;
  readonly outcome: string;
}

/** Calls the function that producers call, with whatever is given as its argument. */
export async function bareEnqueue(runner: Runner, jobs: unknown): Promise<readonly Enqueued[]> {
  const { rows } = await runner.query<{ ord: number; id: string; outcome: string }>(
    "select ord, id, outcome from venturi_enqueue_v1($1::text::jsonb)",
    [JSON.stringify(jobs)],
  );
  return rows.map(({ ord, id, outcome }) => ({ ord, id: fromUuid(id), outcome }));
}

/** The member `id` of a job, as the function takes it, with the id that it stands for. */
export function bareId(id: JobId = newId()): { readonly id: string } {
  return { id: toUuid(id) };
}

export interface StoredJob {
  readonly id: JobId;
  readonly kind: string;
  readonly payload: unknown;
  readonly headers: unknown;
  readonly priority: number;
  readonly created_at: Date;
  readonly dedup_key: string | null;
  readonly visible_at: Date;
  readonly scheduled: boolean;
  readonly lease_ms: number | null;
  readonly run_count: number;
  readonly claimed_by: number | null;
  readonly carry: unknown;
  readonly seq: number;
  /** The transaction that wrote the row of the queue, and that of the body. */
  readonly xmin: string;
  readonly body_xmin: string;
}

/** The live jobs that match, in order of arrival. */
export async function liveJobs(runner: Runner, condition = "true"): Promise<readonly StoredJob[]> {
  const { rows } =
    await runner.query(`select venturi_ulid(q.job_id) as id, k.name as kind, b.payload, b.headers,
      q.priority, b.priority = q.priority as same_priority, b.created_at, q.dedup_key, b.dedup_key is not distinct from q.dedup_key as same_key,
      q.visible_at, q.scheduled, q.lease_ms, q.run_count, q.claimed_by, q.carry, q.seq::float8 as seq,
      q.xmin::text as xmin, b.xmin::text as body_xmin
    from venturi_queue q join venturi_jobs b on b.id = q.job_id join venturi_kinds k on k.id = q.kind_id and k.id = b.kind_id
    where ${condition} order by q.seq`);
  for (const { id, same_priority, same_key } of rows)
    if (!same_priority || !same_key) throw new Error(`body and queue row of ${id} differ`);
  return rows.map(({ same_priority: _, same_key: __, ...row }) => row);
}

/** The journal of a job, oldest first. */
export async function journalOf(runner: Runner, id: JobId): Promise<readonly unknown[]> {
  const { rows } = await runner.query(
    `select venturi_outcome(outcome) as outcome, note, run_no, venturi_ulid(incoming_id) as incoming
    from venturi_journal where job_id = $1::uuid order by entry_no`,
    [toUuid(id)],
  );
  return rows;
}
