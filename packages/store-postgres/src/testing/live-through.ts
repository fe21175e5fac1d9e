import type { JobId } from "@venturi/core";
import type { PostgresStore } from "../postgres-store.ts";
import {
  claimKind,
  claimRequest,
  job,
  registration,
  settlement,
  startWorker,
} from "./store-fixture.ts";
import { until } from "./until.ts";

const everything = {
  statuses: null,
  ids: null,
  finishedSince: null,
  finishedUntil: null,
  limit: 100,
  before: null,
};

/**
 * Uses every verb of a store but those that need a transaction, and returns what was seen, without what differs from one time to the next: the
 * same for every way of reaching one database. `kind` must not have been used before.
 */
export async function liveThrough(store: PostgresStore, kind: string): Promise<unknown> {
  const seen: unknown[] = [];
  const ids: JobId[] = [];
  const see = (what: unknown) => seen.push(normalised(what, kind, ids));
  const enqueue = async (...jobs: Parameters<typeof job>[1][]) => {
    const request = jobs.map((changes) => job(kind, changes));
    ids.push(...request.map(({ id }) => id));
    see(await store.enqueue({ jobs: request }));
  };

  await store.migrate();
  await enqueue(
    { payload: '{"n":1}', headers: { trace: "1" }, priority: "high" },
    { payload: '{"n":2}', dedupKey: "k", leaseMs: 60_000 },
    { payload: '{"n":3}', dedupKey: "k", merge: "keep" },
    { payload: '{"n":4}', delayMs: 3_600_000 },
    { payload: '{"n":5}', runAt: Date.UTC(2999, 11, 31, 23, 59, 59, 999) },
    { payload: '{"n":6}', priority: "low" },
    { payload: '{"n":7}', priority: "low" },
  );
  await enqueue({ payload: '{"n":8}', dedupKey: "k" });
  const { candidates } = await store.findCandidates({ keys: [{ kind, dedupKey: "k" }] });
  see({ candidates });
  const pending = candidates[0]?.[0];
  if (!pending) throw new Error("a job of the key is pending");
  const about = { candidate: pending.id, version: pending.version, runCount: pending.runCount };
  const decision = { action: "with", payload: '{"n":17}', ...about } as const;
  await enqueue({ payload: '{"n":9}', dedupKey: "k", decision });

  const worker = await startWorker(store, { kinds: [kind] });
  const claim = async (leaseMs: number, limit = 10) => {
    const result = await store.claim(
      claimRequest(worker, [claimKind(kind, { leaseMs })], { limit }),
    );
    see(result);
    return result.jobs;
  };
  const [first, second, third, fourth] = await claim(900_000);
  if (!first || !second || !third || !fourth) throw new Error("four jobs are due");
  const settlements = [
    settlement(first, "paused", { carry: '{"page":1}', note: "later", attachment: "[1]" }),
    settlement(second, "retried", { note: "failed", detail: '{"name":"E"}', runAt: Date.now() }),
    settlement(third, "dead", { note: "for good" }),
    settlement({ ...fourth, runCount: 9 }),
  ];
  see(await store.settle({ worker, settlements }));
  see(await store.settle({ worker, settlements: [settlement(fourth)] }));
  see(await store.settle({ worker, settlements: [settlement(fourth)] }));
  const [fifth, sixth] = await claim(900_000);
  if (!fifth || !sixth) throw new Error("two jobs are due again");
  const claims = [fifth, sixth].map(({ id, runCount }) => ({ jobId: id, runCount }));
  const extensions = claims.map(({ jobId }, n) => ({ jobId, runCount: 2 + n, leaseMs: 1_000_000 }));
  see(await store.extendLease({ worker, extensions }));
  see(await store.handBack({ worker, claims }));
  await claim(1, 1);
  let stale: Awaited<ReturnType<typeof store.findStale>>["claims"] = [];
  await until(async () => {
    const holders = [{ worker, overdueOnly: true }];
    stale = (await store.findStale({ holders, orphans: false, limit: 10 })).claims;
    return stale.length > 0;
  });
  see({ stale });
  const recoveries = stale.map(({ jobId, runCount, holder }) => ({
    ...{ jobId, runCount, holder, note: "stale" },
    ...{ outcome: "stale-recovered" as const, delayMs: 60_000 },
  }));
  see(await store.recover({ recoveries }));
  const { serverUpMs } = await store.beat({ ...registration, kinds: [kind], worker });
  see({ isUp: serverUpMs > 0 });
  await store.stopWorker({ worker });
  await store.configure({ notify: true });
  see(await store.queryJobs({ ...everything, kinds: [kind] }));
  for (const jobId of ids) see(await store.readJournal({ jobId }));
  await operate();
  return seen;

  async function operate(): Promise<void> {
    const [delayed, dead] = [ids[3] ?? "", third?.id ?? ""];
    const count = async () => {
      const { stats } = await store.stats({});
      const { pendingByKind, scheduledByKind, deadByKind, oldestPendingAgeMsByKind } = stats;
      const waits = typeof oldestPendingAgeMsByKind[kind];
      see([pendingByKind[kind], scheduledByKind[kind], deadByKind[kind], waits]);
    };
    await count();
    for (const id of [delayed, delayed]) see(await store.cancel({ id }));
    for (const id of [dead, dead]) see(await store.retry({ id }));
    for (const id of [delayed, dead]) see(await store.findJob({ id }));
    await count();
    const finishedBefore = new Date("2999-01-01");
    const statuses = ["completed", "cancelled"] as const;
    see(await store.cleanup({ finishedBefore, kind, statuses }));
    see(await store.findJob({ id: delayed }));
  }
}

/** Ids by their place, the kind by a fixed name, instants and measured times by what they are. */
function normalised(what: unknown, kind: string, ids: readonly JobId[]): unknown {
  const measured = new Set(["waitMs", "latencyMs"]);
  const text = JSON.stringify(what, function (this: Record<string, unknown>, name, value) {
    if (this[name] instanceof Date) return "an instant";
    if (measured.has(name) && typeof value === "number") return "a time";
    if (name === "holder") return "a worker";
    return value === kind ? "the kind" : value;
  });
  return JSON.parse(ids.reduce((all, id, index) => all.replaceAll(id, `id ${index}`), text));
}
