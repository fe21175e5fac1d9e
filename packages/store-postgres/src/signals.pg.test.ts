import { getEventListeners } from "node:events";
import { endStatuses } from "@venturi/core";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { gatedPool } from "./testing/gated-pool.ts";
import {
  claimNew,
  claimRequest,
  enqueue,
  job,
  newId,
  registration,
  settlement,
  startWorker,
} from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { pool } = await testDatabase();
expectNoWarnings();
const gated = gatedPool(pool);
const store = new PostgresStore({ pool: gated });
const worker = await startWorker(store, { kinds: ["k"] });
const [id] = await enqueue(store, job("other"));
const claims = [{ jobId: newId(), runCount: 1 }];
const finishedBefore = new Date(0);
const everything = {
  statuses: null,
  kinds: null,
  ids: null,
  finishedSince: null,
  finishedUntil: null,
  limit: 1,
  before: null,
};

afterEach(() => expectInvariants(pool));
afterAll(() => store.close());

/** Every verb that a caller may stop waiting for. */
const verbs: Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>> = {
  enqueue: (signal) => store.enqueue({ jobs: [job("other")], signal }),
  findCandidates: (signal) =>
    store.findCandidates({ keys: [{ kind: "other", dedupKey: "a" }], signal }),
  startWorker: (signal) => store.startWorker({ ...registration, signal }),
  stopWorker: (signal) => store.stopWorker({ worker: -1, signal }),
  claim: (signal) => store.claim({ ...claimRequest(worker, ["k"]), signal }),
  settle: (signal) =>
    store.settle({ worker, settlements: [settlement({ id: newId(), runCount: 1 })], signal }),
  handBack: (signal) => store.handBack({ worker, claims, signal }),
  extendLease: (signal) =>
    store.extendLease({
      worker,
      extensions: claims.map((claim) => ({ ...claim, leaseMs: 1_000 })),
      signal,
    }),
  beat: (signal) => store.beat({ ...registration, worker, signal }),
  findStale: (signal) => store.findStale({ holders: [], orphans: true, limit: 1, signal }),
  recover: (signal) =>
    store.recover({
      recoveries: [
        { jobId: newId(), runCount: 1, holder: -1, outcome: "dead", delayMs: 0, note: "n" },
      ],
      signal,
    }),
  findJob: (signal) => store.findJob({ id: newId(), signal }),
  queryJobs: (signal) => store.queryJobs({ ...everything, signal }),
  readJournal: (signal) => store.readJournal({ jobId: newId(), signal }),
  stats: (signal) => store.stats({ signal }),
  cleanup: (signal) => store.cleanup({ finishedBefore, kind: null, statuses: endStatuses, signal }),
  retry: (signal) => store.retry({ id: newId(), signal }),
  cancel: (signal) => store.cancel({ id: newId(), signal }),
  configure: (signal) => store.configure({ notify: true }, { signal }),
  migrate: (signal) => store.migrate({ signal }),
};

describe.each(Object.entries(verbs))("%s", (_, call) => {
  it("is no longer waited for when its signal aborts", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    await gated.whileClosed(async () => {
      const calling = call(controller.signal);
      await gated.waiting();
      controller.abort(reason);
      await expect(calling).rejects.toBe(reason);
    });
  });

  it("sends nothing where its signal has aborted before", async () => {
    const reason = new Error("no");
    await gated.whileClosed(async () => {
      await expect(call(AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(gated.asked).toEqual([]);
    });
  });
});

it("is shared by many calls without a warning, and let go of", async () => {
  const { signal } = new AbortController();
  const calls = Array.from({ length: 100 }, () => store.cancel({ id: newId(), signal }));
  await Promise.all([...calls, ...Object.values(verbs).map((call) => call(signal))]);
  await until(() => getEventListeners(signal, "abort").length === 0);
});

describe("what was sent is carried out, though nobody waits for it:", () => {
  /** Calls, and stops waiting once something was sent. */
  async function abandoned(call: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const controller = new AbortController();
    await gated.whileClosed(async () => {
      const calling = call(controller.signal);
      await gated.waiting();
      controller.abort();
      await expect(calling).rejects.toBe(controller.signal.reason);
    });
  }

  const statusOf = async (jobId = "") => (await store.findJob({ id: jobId })).job?.status;

  it("a cancel", async () => {
    await abandoned((signal) => store.cancel({ id: id ?? "", signal }));
    await until(async () => (await statusOf(id)) === "cancelled");
  });

  it("a settlement", async () => {
    const [run] = await claimNew(store, worker, "k", 1);
    await abandoned((signal) => store.settle({ worker, settlements: [settlement(run)], signal }));
    await until(async () => (await statusOf(run.id)) === "completed");
  });

  it("a statement of a cleanup, and none after it", async () => {
    const before = new Date(Date.now() + 60_000);
    const request = { finishedBefore: before, kind: null, statuses: endStatuses };
    await abandoned((signal) => store.cleanup({ ...request, signal }));
    await until(() => gated.answered === 1);
    await store.stats();
    expect(gated.asked).toHaveLength(2);
  });

  it("the start of a session, which is ended, since nobody knows of it", async () => {
    const name = "never known";
    await abandoned((signal) => store.startWorker({ ...registration, name, signal }));
    const ended = "select from venturi_workers where name = $1 and stopping_at is not null";
    await until(async () => (await pool.query(ended, [name])).rowCount === 1);
  });

  it("a beat, before its session ends: it would open it again", async () => {
    const ending = await startWorker(store);
    const controller = new AbortController();
    const { signal } = controller;
    let stopping = Promise.resolve();
    await gated.whileClosed(async () => {
      const beating = store.beat({ ...registration, worker: ending, signal });
      await gated.waiting();
      controller.abort();
      await expect(beating).rejects.toBe(signal.reason);
      stopping = store.stopWorker({ worker: ending });
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(gated.asked).toHaveLength(1);
    });
    await stopping;
    const { rows } = await pool.query("select stopping_at from venturi_workers where id = $1", [
      ending,
    ]);
    expect(rows).toEqual([{ stopping_at: expect.any(Date) }]);
  });
});
