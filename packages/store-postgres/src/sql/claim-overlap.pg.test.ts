import type { ClaimedJob, JobId, Settlement } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { Gate } from "../testing/gate.ts";
import {
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const database = await testDatabase();
const { pool } = database;
const store = new PostgresStore({ pool });
const gate = await Gate.build(database);
const slowStore = gate.store;

afterAll(async () => {
  await gate.end();
  await expectInvariants(pool);
});

const claims: [string, boolean, boolean][] = [
  ["a first claim", false, false],
  ["a claim after one that took all", true, false],
  ["a claim for a named job", true, true],
];

it.each(claims)(
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

describe.each<[string, (claimed: ClaimedJob) => Settlement | null]>([
  ["claimed", () => null],
  ["put off", (claimed) => settlement(claimed, "paused", { delayMs: 3_600_000 })],
  ["ended", (claimed) => settlement(claimed)],
])(
  "a job that was %s while another claim was looking is none that this claim brings",
  (_, ending) => {
    it.each(claims)("%s", async (_, isAll, isNamed) => {
      const [fast, slow] = [await startWorker(store), await startWorker(slowStore)];
      const kind = newId();
      if (isAll) await slowStore.claim(claimRequest(slow, [kind]));
      const [id] = await enqueue(store, job(kind));
      const hint = isNamed ? { hint: id as JobId } : {};
      const { jobs } = await gate.hold(
        () => slowStore.claim(claimRequest(slow, [kind], hint)),
        async () => {
          const { jobs: taken } = await store.claim(claimRequest(fast, [kind]));
          const settlements = taken.map(ending).filter((each) => each !== null);
          await store.settle({ worker: fast, settlements });
          expect(taken).toHaveLength(1);
        },
      );
      expect(jobs).toEqual([]);
      expect((await store.findJob({ id: id as JobId })).job?.runCount).toBe(1);
    });
  },
);
