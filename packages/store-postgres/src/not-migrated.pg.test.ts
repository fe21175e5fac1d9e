import { testDatabase } from "@venturi-tooling/testing";
import { describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { claimRequest, job, newId, registration, settlement } from "./testing/store-fixture.ts";

const { pool } = await testDatabase({ migrated: false });
const worker = 1;
const jobId = newId();
const filter = {
  statuses: null,
  kinds: null,
  ids: null,
  finishedSince: null,
  finishedUntil: null,
  limit: 10,
  before: null,
};

const verbs: [string, (store: PostgresStore) => Promise<unknown>][] = [
  ["enqueue", (store) => store.enqueue({ jobs: [job("k")] })],
  [
    "within(tx).enqueue",
    async (store) => {
      const client = await pool.connect();
      const call = store.within(client).enqueue({ jobs: [job("k")] });
      return call.finally(() => client.release());
    },
  ],
  ["configure", (store) => store.configure({ notify: true })],
  ["startWorker", (store) => store.startWorker({ ...registration, kinds: ["k"] })],
  ["startWorker without kinds", (store) => store.startWorker(registration)],
  ["stopWorker", (store) => store.stopWorker({ worker })],
  ["claim", (store) => store.claim(claimRequest(worker, ["k"]))],
  [
    "settle",
    (store) => store.settle({ worker, settlements: [settlement({ id: jobId, runCount: 1 })] }),
  ],
  ["handBack", (store) => store.handBack({ worker, claims: [{ jobId, runCount: 1 }] })],
  ["beat", (store) => store.beat({ ...registration, worker })],
  [
    "findStale",
    (store) =>
      store.findStale({ holders: [{ worker, overdueOnly: true }], orphans: false, limit: 1 }),
  ],
  [
    "recover",
    (store) =>
      store.recover({
        recoveries: [
          { jobId, runCount: 1, holder: worker, outcome: "stale-recovered", delayMs: 0, note: "" },
        ],
      }),
  ],
  [
    "extendLease",
    (store) => store.extendLease({ worker, extensions: [{ jobId, runCount: 1, leaseMs: 1 }] }),
  ],
  [
    "complete",
    async (store) => {
      const client = await pool.connect();
      const run = { worker, jobId, runCount: 1, note: null, attachment: null };
      return store.complete(client, run).finally(() => client.release());
    },
  ],
  ["findCandidates", (store) => store.findCandidates({ keys: [{ kind: "k", dedupKey: "1" }] })],
  ["stats", (store) => store.stats({})],
  [
    "cleanup",
    (store) =>
      store.cleanup({ finishedBefore: new Date(), kind: null, statuses: ["completed", "dead"] }),
  ],
  ["retry", (store) => store.retry({ id: jobId })],
  ["cancel", (store) => store.cancel({ id: jobId })],
  ["findJob", (store) => store.findJob({ id: jobId })],
  ["queryJobs", (store) => store.queryJobs(filter)],
  ["readJournal", (store) => store.readJournal({ jobId })],
];

describe.each([
  ["its tables", {}],
  ["its schema", { schema: "nowhere" }],
])("a database without %s", (_, options) => {
  it.each(verbs)("says of %s that migrate has to be run", async (_verb, call) => {
    const error = await failureOf(call(new PostgresStore({ pool, ...options })));
    expect(error).toMatchObject({ code: "not-migrated", isRetryable: false });
    expect(error.message).toContain("run migrate");
  });
});
