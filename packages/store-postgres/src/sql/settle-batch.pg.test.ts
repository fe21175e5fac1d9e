import type { JobId, Settlement, WorkerId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { failureOf } from "../testing/failure-of.ts";
import { whileLocked } from "../testing/locks.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import {
  claimNew,
  claimRequest,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const kinds = ["a"];
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store, { name: "w" });
});
afterEach(() => expectInvariants(pool));

const claimed = <N extends number>(count: N) => claimNew(store, worker, "a", count);

const settle = async (...settlements: readonly Settlement[]) =>
  (await store.settle({ worker, settlements })).verdicts;

const jobOf = async (id: JobId) => (await store.findJob({ id })).job;

describe("a batch", () => {
  it("that holds a run twice settles it once", async () => {
    const [job] = await claimed(1);
    if (!job) throw new Error("nothing was claimed");
    const noted = settlement(job, "dead", { note: "broken" });
    expect(await settle(noted, noted)).toEqual(["applied", "done"]);
    const { entries } = await store.readJournal({ jobId: job.id });
    expect(entries.map(({ outcome }) => outcome)).toEqual(["dead"]);
  });

  it("may hold every outcome, and every verdict", async () => {
    const jobs = await claimed(8);
    const [completed, paused, retried, dead, released, locked, done] = jobs;
    if (!completed || !paused || !retried || !dead || !released || !locked || !done)
      throw new Error("eight were enqueued");
    const told = { note: "x" };
    await settle(settlement(done, "completed", told));
    await whileLocked(pool, [locked.id], async () => {
      const verdicts = await settle(
        settlement(completed, "completed", told),
        settlement({ ...completed, runCount: 9 }),
        settlement(paused, "paused", { ...told, delayMs: 5 }),
        settlement(locked, "completed", told),
        settlement(retried, "retried", told),
        settlement(done, "completed", told),
        settlement(dead, "dead", told),
        settlement({ id: newId(), runCount: 1 }, "dead", told),
        settlement(released, "released", told),
      );
      const expected = "applied lost applied busy applied done applied lost applied";
      expect(verdicts.join(" ")).toBe(expected);
    });
    const statuses = await Promise.all(jobs.map(async ({ id }) => (await jobOf(id))?.status));
    expect(statuses.join(" ")).toBe(
      "completed pending pending dead pending claimed completed claimed",
    );
  });

  it("of nothing asks the database for nothing", async () => {
    expect(await recorder.queriesOf(() => settle())).toEqual([]);
  });

  it.each([
    ["completed and silent", ["completed"]],
    ["of all outcomes", ["completed", "paused", "retried", "dead", "released"]],
  ] as const)("of a thousand runs is one statement: %s", async (_, outcomes) => {
    await addBacklog(pool, { kind: "a", count: 1_000 });
    const { jobs } = await store.claim(claimRequest(worker, kinds, { limit: 1_000 }));
    const settlements = jobs.map((each, index) => {
      const outcome = outcomes[index % outcomes.length] ?? "completed";
      return settlement(each, outcome, outcome === "completed" ? {} : { note: "x", delayMs: 9e5 });
    });
    const queries = await recorder.queriesOf(async () => {
      expect(new Set(await settle(...settlements))).toEqual(new Set(["applied"]));
    });
    expect(queries).toHaveLength(1);
    const { rows } = await pool.query(
      `select count(*)::int4 as entries, count(distinct job_id)::int4 as jobs from venturi_journal`,
    );
    expect(rows).toEqual([{ entries: 1_000, jobs: 1_000 }]);
  });

  it.each([
    ["an attachment that is not JSON", { attachment: "{no" }, "22P02"],
    ["a carry that is not JSON", { carry: "" }, "22P02"],
    ["a note with U+0000", { note: "a\u0000" }, "22021"],
  ])("with %s is refused as a whole, by an error that says so", async (_, bad, sqlState) => {
    const jobs = await claimed(3);
    const settlements = jobs.map((each, index) =>
      settlement(each, "paused", index === 1 ? bad : { note: "fine" }),
    );
    const error = await failureOf(settle(...settlements));
    expect(error).toMatchObject({ code: "database", sqlState, isRetryable: false });
    expect(error.message).toContain("settle 3 runs");
    for (const { id } of jobs) expect(await jobOf(id)).toMatchObject({ status: "claimed" });
    const { rows } = await pool.query("select 1 from venturi_journal");
    expect(rows).toEqual([]);
  });
});
