import * as v from "valibot";
import { createJobIds } from "../job-id.ts";
import { Merge, type MergeFunction } from "../merge.ts";
import { planMerges } from "../merge-plan.ts";
import type { MergeCandidate } from "../pending-row.ts";
import type { EnqueueJob } from "../store.ts";
import { defineTask, type Task } from "../task.ts";

/** When all plans of the tests are made. */
export const now = new Date("2026-01-01T00:00:00Z");
const newId = createJobIds({ now: () => 0, random: () => 0.5 });

export type Payload = { readonly n: number };
export type Carry = { readonly page: number };

export const payload = v.object({ n: v.pipe(v.number(), v.maxValue(1_000)) });
const carry = v.optional(v.object({ page: v.number() }), { page: 0 });

/** A task all of whose jobs have the same key. */
export function taskThat(merge: MergeFunction<Payload, Carry>) {
  return defineTask({ kind: "k", payload, carry, dedupKey: () => "key", merge });
}

/** A task whose pending job holds the sum. */
export const sum = taskThat((incoming, existing) =>
  Merge.with({ n: incoming.n + existing.payload.n }, existing.carry),
);

/** A job that is about to be enqueued. */
export function job(n: unknown, changes: Partial<EnqueueJob> = {}): EnqueueJob {
  const text = JSON.stringify({ n });
  return { id: newId(), kind: "k", payload: text, priority: "normal", dedupKey: "key", ...changes };
}

/** A job that is pending under the same key. */
export function candidate(n: unknown, changes: Partial<MergeCandidate> = {}): MergeCandidate {
  return {
    id: newId(),
    version: 3,
    runCount: 2,
    failureCount: 1,
    priority: "normal",
    visibleAt: new Date(now.getTime() + 60_000),
    payload: JSON.stringify({ n }),
    carry: null,
    journal: [],
    ...changes,
  };
}

/** The plan for jobs that all ask the same task. */
export function plan(
  task: Task,
  jobs: readonly EnqueueJob[],
  candidates: readonly MergeCandidate[] = [],
) {
  return planMerges(
    jobs.map((one) => ({ job: one, task })),
    candidates,
    { now },
  );
}
