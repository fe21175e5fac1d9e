import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import {
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

describe("the journal of a job", () => {
  it("tells every entry in order, with all that was said of it", async () => {
    const [id] = await enqueue(store, job("told", { dedupKey: "1", payload: '{"n":1}' }));
    await enqueue(store, job("told", { dedupKey: "1", merge: "keep" }));
    const worker = await startWorker(store, { name: "teller", kinds: ["told"] });
    const run = async (
      ...end: [Parameters<typeof settlement>[1], Parameters<typeof settlement>[2]?]
    ) => {
      const { jobs } = await store.claim(claimRequest(worker, ["told"]));
      await store.settle({
        worker,
        settlements: jobs.map((claimed) => settlement(claimed, ...end)),
      });
    };
    await run("paused", { note: "later", attachment: '{"rows":[1,2]}' });
    await run("retried", {
      note: "failed",
      detail: '{"name":"TypeError","code":"E1","stack":"at x"}',
    });
    await run("released");
    await run("completed", { note: "", attachment: "0" });
    const { entries } = await store.readJournal({ jobId: String(id) });
    const common = {
      jobId: id,
      kind: "told",
      note: null,
      attachment: null,
      detail: null,
      worker: "teller",
    };
    const instants = { startedAt: expect.any(Date), recordedAt: expect.any(Date) };
    expect(entries).toEqual([
      {
        ...common,
        ...instants,
        runNo: 0,
        outcome: "merged",
        note: "keep",
        worker: null,
        startedAt: null,
      },
      {
        ...common,
        ...instants,
        runNo: 1,
        outcome: "paused",
        note: "later",
        attachment: { rows: [1, 2] },
      },
      {
        ...{ ...common, ...instants, runNo: 2, outcome: "retried", note: "failed" },
        detail: { name: "TypeError", code: "E1", stack: "at x" },
      },
      { ...common, ...instants, runNo: 3, outcome: "released" },
      { ...common, ...instants, runNo: 4, outcome: "completed", note: "", attachment: 0 },
    ]);
    for (const { startedAt, recordedAt } of entries)
      expect(Number(startedAt)).toBeLessThanOrEqual(recordedAt.getTime());
    await expectInvariants(pool);
  });

  it("is empty for a job that has not run, and for one that is unknown", async () => {
    const [id] = await enqueue(store, job("quiet"));
    expect(await store.readJournal({ jobId: String(id) })).toEqual({ entries: [] });
    expect(await store.readJournal({ jobId: newId() })).toEqual({ entries: [] });
  });

  it("names no worker whose row has gone", async () => {
    const [id] = await enqueue(store, job("left"));
    const worker = await startWorker(store, { name: "gone", kinds: ["left"] });
    const { jobs } = await store.claim(claimRequest(worker, ["left"]));
    await store.settle({ worker, settlements: jobs.map((claimed) => settlement(claimed)) });
    await pool.query("delete from venturi_workers where id = $1", [worker]);
    const { entries } = await store.readJournal({ jobId: String(id) });
    expect(entries).toMatchObject([{ outcome: "completed", worker: null }]);
  });
});

describe("a limit", () => {
  it("takes the latest entries, still in order, by number and not by time", async () => {
    const [id] = await enqueue(store, job("long"));
    // Beyond what is an int4, across a change of digits, and all at one moment.
    await pool.query(`alter table venturi_journal alter entry_no restart with 9999999995`);
    const worker = await startWorker(store, { kinds: ["long"] });
    for (let n = 1; n <= 12; n += 1) {
      const { jobs } = await store.claim(claimRequest(worker, ["long"]));
      const settlements = jobs.map((claimed) => settlement(claimed, "paused", { note: `${n}` }));
      await store.settle({ worker, settlements });
    }
    await pool.query("update venturi_journal set recorded_at = 'epoch'");
    const notes = async (limit?: number) => {
      const { entries } = await store.readJournal({ jobId: String(id), limit });
      return entries.map(({ note }) => Number(note));
    };
    const all = Array.from({ length: 12 }, (_, index) => index + 1);
    expect(await notes()).toEqual(all);
    for (const limit of [1, 3, 12, 1_000]) expect(await notes(limit)).toEqual(all.slice(-limit));
    expect(await notes(0)).toEqual([]);
  });
});

it("the view job_history shows people the same", async () => {
  const [id] = await enqueue(store, job("viewed"));
  const worker = await startWorker(store, { name: "seen", kinds: ["viewed"] });
  const { jobs } = await store.claim(claimRequest(worker, ["viewed"]));
  await store.settle({
    worker,
    settlements: jobs.map((claimed) => settlement(claimed, "dead", { note: "n" })),
  });
  const { rows } = await pool.query(
    `select job, kind, run_no, outcome, note, worker, failure_count from venturi_job_history where job = $1`,
    [id],
  );
  expect(rows).toEqual([
    {
      job: id,
      kind: "viewed",
      run_no: 1,
      outcome: "dead",
      note: "n",
      worker: "seen",
      failure_count: 1,
    },
  ]);
});
