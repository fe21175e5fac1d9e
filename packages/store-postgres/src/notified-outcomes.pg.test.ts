import { once } from "node:events";
import { type SettlementOutcome, silentLogger } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { removeJobs } from "./testing/backlog.ts";
import { claimNew, enqueue, job, settlement, startWorker } from "./testing/store-fixture.ts";

const { url, pool } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const wakes = new EventTarget();
let woken = 0;
const subscription = store.listen({
  onWake: () => {
    woken += 1;
    wakes.dispatchEvent(new Event("wake"));
  },
  logger: silentLogger,
});
await subscription.listening;

afterEach(async () => {
  await expectInvariants(pool);
  await removeJobs(pool);
});
afterAll(async () => {
  await subscription.close();
  await store.close();
});

/** Rejects when no wake-up comes within a second of what is done. */
async function wakesWithinASecond(work: () => Promise<unknown>): Promise<void> {
  const woken = once(wakes, "wake", { signal: AbortSignal.timeout(1_000) });
  await Promise.all([woken, work()]);
}

/** A run that has begun, its own wake-up over and done with. */
async function begunRun(leaseMs = 60_000) {
  const worker = await startWorker(store, { workerTimeoutMs: 60_000, shortestLeaseMs: leaseMs });
  let run: Awaited<ReturnType<typeof claimNew<1>>>[0] | undefined;
  await wakesWithinASecond(async () => {
    [run] = await claimNew(store, worker, "a", 1);
  });
  if (run === undefined) throw new Error("nothing was claimed");
  return { worker, run };
}

describe("a listener is woken within a second", () => {
  it("by an enqueue", () => wakesWithinASecond(() => enqueue(store, job("a"))));

  it.each<SettlementOutcome>(["retried", "paused", "released"])(
    "by a run that was %s",
    async (outcome) => {
      const { worker, run } = await begunRun();
      const settlements = [settlement(run, outcome)];
      await wakesWithinASecond(() => store.settle({ worker, settlements }));
    },
  );

  it("by a recovery", async () => {
    const { worker, run } = await begunRun();
    await pool.query("update venturi_queue set lease_expires_at = claimed_at");
    const recoveries = [
      {
        jobId: run.id,
        runCount: 1,
        holder: worker,
        outcome: "stale-recovered",
        delayMs: 0,
        note: "lost",
      } as const,
    ];
    await wakesWithinASecond(() => store.recover({ recoveries }));
  });
});

it.each<SettlementOutcome>(["completed", "dead"])(
  "a run that was %s wakes nobody",
  async (outcome) => {
    const { worker, run } = await begunRun();
    const before = woken;
    await store.settle({ worker, settlements: [settlement(run, outcome)] });
    // Notifications come in the order of the commits that sent them.
    await wakesWithinASecond(() => enqueue(store, job("a")));
    expect(woken).toBe(before + 1);
  },
);
