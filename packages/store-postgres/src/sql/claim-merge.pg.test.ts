import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, expect, it } from "vitest";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue } from "../testing/bare-sql.ts";
import { Gate } from "../testing/gate.ts";
import { claimRequest, startWorker } from "../testing/store-fixture.ts";

const database = await testDatabase();
const { pool } = database;
const gate = await Gate.build(database);
const { store } = gate;

afterAll(async () => {
  await gate.end();
  await expectInvariants(pool);
});

it.each([
  ["a first claim", false, false],
  ["a claim after one that took all", true, false],
  ["a claim for a named job", true, true],
])(
  "a job that was merged into while %s was looking runs with what the merge left",
  async (_, isAll, isNamed) => {
    const keyed = (payload: unknown, headers: object) => ({
      kind: "k",
      dedup_key: "1",
      payload,
      headers,
    });
    for (let round = 0; round < 2; round += 1) {
      const worker = await startWorker(store, { kinds: ["k"] });
      // What the store asks once has been asked.
      await store.claim(claimRequest(await startWorker(store), ["absent", "k"]));
      if (isAll) await store.claim(claimRequest(worker, ["absent"]));
      const [named] = await bareEnqueue(pool, [
        keyed("old", { from: "old" }),
        { kind: "k", payload: "beside" },
      ]);
      const merger = await pool.connect();
      await merger.query("begin");
      await bareEnqueue(merger, [keyed("new", { from: "new" })]);
      const hint = isNamed ? { hint: named?.id as JobId } : {};
      const { jobs } = await gate.hold(
        () => store.claim(claimRequest(worker, ["k"], hint)),
        async () => {
          await merger.query("commit");
          merger.release();
        },
      );
      expect(jobs.map(({ payload, headers }) => [payload, { ...headers }])).toEqual([
        ['"new"', { from: "new" }],
        ...(isNamed ? [] : [['"beside"', {}]]),
      ]);
      await removeJobs(pool);
    }
  },
);
