import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Merge } from "./merge.ts";
import { planMerges } from "./merge-plan.ts";
import type { MergeCandidate } from "./pending-row.ts";
import type { EnqueueJob } from "./store.ts";
import type { Task } from "./task.ts";
import { candidate, job, now, plan, sum, taskThat } from "./testing/merge-jobs.ts";

describe("for any jobs of one key", () => {
  const choice = fc.constantFrom("keep", "replace", "with", "independent");
  const step = fc.record({
    choice,
    n: fc.integer({ min: 0, max: 9 }),
    constant: fc.boolean(),
    again: fc.option(fc.nat(), { nil: undefined }),
  });
  const stored = fc.record({ n: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant("bad")) });

  it("applying the decisions one by one finds every candidate as it was decided about", async () => {
    const property = fc.asyncProperty(
      fc.array(stored, { maxLength: 4 }),
      fc.array(step, { minLength: 1, maxLength: 12 }),
      async (existing, steps) => {
        const candidates = existing.map(({ n }) => candidate(n, { version: 0 }));
        const jobs: { job: EnqueueJob; task?: Task }[] = [];
        for (const { choice: chosen, n, constant, again } of steps) {
          const repeated = again === undefined ? undefined : jobs[again % (jobs.length || 1)];
          if (repeated !== undefined) {
            jobs.push(repeated);
          } else if (constant && chosen !== "with") {
            jobs.push({ job: job(n, { merge: chosen as "keep" }) });
          } else {
            const made = { keep: Merge.keep(), replace: Merge.replace() } as const;
            const task = taskThat((incoming, { payload: { n: m } }) =>
              chosen === "with"
                ? Merge.with({ n: incoming.n + m })
                : chosen === "independent"
                  ? Merge.independent()
                  : made[chosen as "keep"],
            );
            jobs.push({ job: job(n), task });
          }
        }
        const { jobs: decided, failure } = await planMerges(jobs, candidates, { now });
        expect(failure).toBeNull();

        // A store as small as can be.
        const rows = candidates.map(({ id, payload: text }) => ({ id, text, version: 0 }));
        const known = new Set<string>();
        for (const { id, payload: text, merge, decision } of decided) {
          if (known.has(id)) continue;
          known.add(id);
          const action = decision?.action ?? merge;
          const named =
            decision !== undefined && "candidate" in decision ? decision.candidate : rows[0]?.id;
          const row = rows.find((one) => one.id === named);
          if (action === "insert") {
            const skipped = decision?.action === "insert" ? decision.skipped : [];
            expect(rows.filter((one) => !skipped.includes(one.id))).toEqual([]);
          }
          if (action === "insert" || action === "independent" || row === undefined) {
            expect(action === "insert" || action === "independent" || rows.length === 0).toBe(true);
            rows.push({ id, text, version: 0 });
            continue;
          }
          if (decision !== undefined && "version" in decision) {
            expect(row.version).toBe(decision.version);
            expect(row.text).not.toContain("bad");
          }
          if (action === "keep") continue;
          row.version += 1;
          row.text = decision?.action === "with" ? decision.payload : text;
        }
      },
    );
    await fc.assert(property, { numRuns: 500 });
  });

  it("a sum is the sum of all, however they are cut into calls", async () => {
    const numbers = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 20 });
    const property = fc.asyncProperty(numbers, fc.nat(), async (all, cut) => {
      let pending: MergeCandidate | undefined;
      const at = cut % (all.length + 1);
      for (const part of [all.slice(0, at), all.slice(at)]) {
        const { jobs } = await plan(
          sum,
          part.map((n) => job(n)),
          pending ? [pending] : [],
        );
        for (const { id, payload: text, decision } of jobs) {
          if (decision?.action !== "with")
            pending = candidate(0, { id, payload: text, version: 0 });
          else if (pending !== undefined) {
            expect(decision.version).toBe(pending.version);
            const version = pending.version + 1;
            pending = { ...pending, payload: decision.payload, version };
          }
        }
      }
      expect(JSON.parse(pending?.payload ?? "")).toEqual({ n: all.reduce((a, b) => a + b, 0) });
    });
    await fc.assert(property);
  });
});
