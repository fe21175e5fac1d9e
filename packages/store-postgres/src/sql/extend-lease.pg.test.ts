import type { WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { beforeEach, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { whileLocked } from "../testing/locks.ts";
import { claimNew, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store);
});

it("a lease whose row another transaction has locked is busy, not waited for, and does not hold up the rest", async () => {
  const jobs = await claimNew(store, worker, "a", 3);
  const leaseMs = 3_600_000;
  const extensions = jobs.map(({ id: jobId, runCount }) => ({ jobId, runCount, leaseMs }));
  const extend = async () => {
    const { results } = await store.extendLease({ worker, extensions });
    return results.map(({ verdict }) => verdict);
  };
  await whileLocked(pool, [jobs[1].id], async () => {
    expect(await extend()).toEqual(["applied", "busy", "applied"]);
  });
  expect(await extend()).toEqual(["applied", "applied", "applied"]);
  await expectInvariants(pool);
});
