import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { Gate } from "../testing/gate.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "../testing/store-fixture.ts";

const database = await testDatabase();
const { pool } = database;
const store = new PostgresStore({ pool });
const gate = await Gate.build(database);
const slowStore = gate.store;

afterAll(async () => {
  await gate.end();
  await expectInvariants(pool);
});

it.each([
  ["a first claim", false, false],
  ["a claim after one that took all", true, false],
  ["a claim for a named job", true, true],
])(
  "a job that was run and given back while %s was looking begins its next run after that one has ended",
  async (_, isAll, isNamed) => {
    const [fast, slow] = [await startWorker(store), await startWorker(slowStore)];
    if (isAll) await slowStore.claim(claimRequest(slow, ["k"]));
    const [id] = await enqueue(store, job("k"));
    const hint = isNamed ? { hint: id as JobId } : {};
    const { jobs } = await gate.hold(
      () => slowStore.claim(claimRequest(slow, ["k"], hint)),
      async () => {
        const first = await store.claim(claimRequest(fast, ["k"]));
        await store.settle({
          worker: fast,
          settlements: first.jobs.map((claimed) => settlement(claimed, "paused")),
        });
      },
    );
    expect(jobs.map((claimed) => [claimed.id, claimed.runCount])).toEqual([[id, 2]]);
    await store.settle({
      worker: slow,
      settlements: jobs.map((claimed) => settlement(claimed)),
    });
    const { rows } = await pool.query(
      `select started_at >= lag(recorded_at) over (order by entry_no) as after
      from venturi_journal where venturi_ulid(job_id) = $1 order by entry_no`,
      [id],
    );
    expect(rows).toEqual([{ after: null }, { after: true }]);
  },
);
