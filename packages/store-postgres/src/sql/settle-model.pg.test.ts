import type { ClaimedJob, Settlement, SettleVerdict, WorkerId } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { whileLocked } from "../testing/locks.ts";
import { claimNew, newId, settlement, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

/** How a job stands before the call. */
const states = [
  "held",
  "held",
  "held",
  "touched",
  "locked",
  "of another",
  "ended",
  "gone",
] as const;

const anyScenario = fc.record({
  jobs: fc.array(
    fc.record({ state: fc.constantFrom(...states), runCount: fc.integer({ min: 1, max: 3 }) }),
    { minLength: 1, maxLength: 6 },
  ),
  asked: fc.array(
    fc.record({
      /** Few, so that a job stands there more than once. */
      job: fc.nat(5),
      /** Beside the one that the job has. */
      runsOff: fc.constantFrom(0, 0, 0, 0, -1, 1),
      outcome: fc.constantFrom("completed", "completed", "completed", "released"),
    }),
    { maxLength: 9 },
  ),
  /** Whether all of them say nothing but that they have completed. */
  isPlain: fc.boolean(),
  isNoted: fc.boolean(),
});

it("each run is settled once and its verdict stands at its place, whatever stands in a call and however often", async () => {
  const worker: WorkerId = await startWorker(store, { name: "w" });
  const other = await startWorker(store, { name: "other" });
  await fc.assert(
    fc.asyncProperty(anyScenario, async ({ jobs, asked, isPlain, isNoted }) => {
      await removeJobs(pool);
      const claimed: readonly ClaimedJob[] = await claimNew(store, worker, "a", jobs.length);
      const model: { state: string; runCount: number; ended: Map<number, string> }[] = [];
      for (const [index, { state, runCount }] of jobs.entries()) {
        const { id } = claimed[index] as ClaimedJob;
        const set = `run_count = ${runCount}, claimed_by = ${state === "of another" ? other : worker}`;
        const where = "where venturi_ulid(job_id) = $1";
        // In the claim's own place, as a claim leaves it: nobody has locked the row since.
        await pool.query(`update venturi_queue set ${set} ${where}`, [id]);
        const ended = new Map<number, string>();
        if (state === "touched") await whileLocked(pool, [id], async () => undefined);
        if (state === "ended") {
          await store.settle({ worker, settlements: [settlement({ id, runCount })] });
          ended.set(runCount, "completed");
        }
        if (state === "gone") await pool.query(`delete from venturi_queue ${where}`, [id]);
        model.push({ state, runCount, ended });
      }
      const requests: Settlement[] = [];
      const expected: SettleVerdict[] = [];
      for (const { job, runsOff, outcome: any } of asked) {
        const index = job % jobs.length;
        const { id } = claimed[index] as ClaimedJob;
        const of = model[index] as (typeof model)[number];
        const runCount = of.runCount + runsOff;
        const outcome = isPlain ? "completed" : any;
        const note = !isPlain && isNoted ? { note: "x" } : {};
        requests.push(settlement({ id, runCount }, outcome, note));
        const holds = !["of another", "ended", "gone"].includes(of.state) && runsOff === 0;
        const found = of.ended.get(runCount);
        if (found === outcome || found === "completed") expected.push("done");
        else if (found !== undefined || !holds) expected.push("lost");
        else if (of.state === "locked") expected.push("busy");
        else {
          expected.push("applied");
          of.ended.set(runCount, outcome);
        }
      }
      // One that nobody has ever heard of.
      requests.push(settlement({ id: newId(), runCount: 1 }));
      expected.push("lost");
      const locked = claimed.filter((_, index) => jobs[index]?.state === "locked");
      const verdicts = await whileLocked(
        pool,
        locked.map(({ id }) => id),
        async () => (await store.settle({ worker, settlements: requests })).verdicts,
      );
      expect(verdicts).toEqual(expected);
      const { rows } = await pool.query(
        "select venturi_ulid(job_id) as id, run_no, count(*)::int4 as entries from venturi_journal where outcome in ('c', 'l') group by 1, 2",
      );
      const written = model.flatMap(({ ended }, index) =>
        [...ended.keys()].map((run_no) => ({ id: claimed[index]?.id, run_no, entries: 1 })),
      );
      const inOrder = (list: readonly { id?: unknown; run_no: number }[]) =>
        list.map((row) => JSON.stringify([row.id, row.run_no])).sort();
      expect(inOrder(rows)).toEqual(inOrder(written));
      expect(rows.every(({ entries }) => entries === 1)).toBe(true);
    }),
    { numRuns: 120 },
  );
}, 60_000);
