import type { JobId, SettlementOutcome, SettleVerdict, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog } from "../testing/backlog.ts";
import { claimKind, claimRequest, settlement, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const outcomes: readonly SettlementOutcome[] = [
  "completed",
  "paused",
  "retried",
  "dead",
  "released",
];

it("settling a run races its recovery 500 times: exactly one of the two applies, and the journal says which", async () => {
  await addBacklog(pool, { kind: "a", count: 500 });
  const worker = await startWorker(store);
  // A lease of no time: the claim is overdue as soon as it is made.
  const kinds = [claimKind("a", { leaseMs: 0 })];
  const { jobs } = await store.claim(claimRequest(worker, kinds, { limit: 500 }));
  const applied = new Map<JobId, string>();
  let next = 0;
  const racer = async () => {
    for (let at = next++; at < jobs.length; at = next++) {
      const job = jobs[at];
      if (job === undefined) return;
      const outcome = outcomes[at % outcomes.length] ?? "completed";
      const [verdict, recovered] = await Promise.all(
        shuffled([() => settleOnce(worker, job, outcome), () => recoverOnce(worker, job)], at),
      );
      expect([verdict, recovered], job.id).toSatisfy(
        ([a, b]) => (a === "applied") !== b && (a === "applied" || a === "lost"),
      );
      applied.set(job.id, recovered ? "stale-recovered" : outcome);
    }
  };
  await Promise.all([racer(), racer(), racer()]);

  for (const { id } of jobs) {
    const { entries } = await store.readJournal({ jobId: id });
    expect(entries.map((entry) => entry.outcome)).toEqual([applied.get(id)]);
  }
  // Both won often enough for this to mean something.
  const recovered = [...applied.values()].filter((each) => each === "stale-recovered").length;
  expect(recovered).toBeGreaterThan(20);
  expect(recovered).toBeLessThan(480);
  await expectInvariants(pool);
});

/** Settles until somebody has the last word. */
async function settleOnce(
  worker: WorkerId,
  job: { readonly id: JobId; readonly runCount: number },
  outcome: SettlementOutcome,
): Promise<SettleVerdict> {
  for (;;) {
    const settlements = [settlement(job, outcome, outcome === "completed" ? {} : { note: "x" })];
    const { verdicts } = await store.settle({ worker, settlements });
    const [verdict = "lost"] = verdicts;
    if (verdict !== "busy") return verdict;
  }
}

async function recoverOnce(
  holder: WorkerId,
  { id, runCount }: { readonly id: JobId; readonly runCount: number },
): Promise<boolean> {
  const recovery = { jobId: id, runCount, holder, delayMs: 0, note: "x" };
  const recoveries = [{ ...recovery, outcome: "stale-recovered" as const }];
  return (await store.recover({ recoveries })).applied[0] ?? false;
}

/** Starts both, one or the other first, at once or a little apart; in their own order of results. */
function shuffled<A, B>(
  [first, second]: readonly [() => Promise<A>, () => Promise<B>],
  at: number,
): [Promise<A>, Promise<B>] {
  const apart = at % 7;
  const later = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let turn = 0; turn < apart; turn += 1) await new Promise(setImmediate);
    return work();
  };
  return at % 2 === 0 ? [first(), later(second)] : [later(first), second()];
}
