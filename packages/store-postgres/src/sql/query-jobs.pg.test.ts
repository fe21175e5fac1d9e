import {
  type JobFilter,
  type JobId,
  type JobRecord,
  jobStatuses,
  resolveJobFilter,
  toJobPage,
} from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import {
  claimKind,
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

async function page(filter: JobFilter = {}) {
  const query = resolveJobFilter(filter);
  const { jobs } = await store.queryJobs({ ...query, limit: query.limit + 1 });
  return toJobPage(jobs, query.limit);
}

const list = async (filter: JobFilter = {}) => (await page(filter)).jobs;

async function record(id: JobId): Promise<JobRecord> {
  const { job: found } = await store.findJob({ id });
  if (found === null) throw new Error(`${id} was not found`);
  return found;
}

/** Claims what is due of a kind and ends the runs, one outcome each in the order of the claim. */
async function run(
  kind: string,
  ...ends: readonly Parameters<typeof settlement>[1][]
): Promise<JobId[]> {
  const worker = await startWorker(store, { name: `worker of ${kind}`, kinds: [kind] });
  const request = claimRequest(worker, [claimKind(kind)], { limit: ends.length });
  const { jobs } = await store.claim(request);
  const settlements = jobs.map((claimed, index) =>
    settlement(claimed, ends[index], { carry: '{"page":1}', delayMs: 3_600_000 }),
  );
  await store.settle({ worker, settlements });
  return jobs.map(({ id }) => id);
}

describe("a job in each of its states", () => {
  const payload = '{"n":1}';
  const common = { payload: { n: 1 }, headers: { trace: "1" }, dedupKey: "key", priority: "high" };
  const give = (kind: string, changes = {}) =>
    enqueue(
      store,
      job(kind, {
        payload,
        headers: { trace: "1" },
        dedupKey: "key",
        priority: "high",
        ...changes,
      }),
    );
  const clock = async () =>
    (await pool.query("select extract(epoch from clock_timestamp())::float8 * 1000 as ms")).rows[0]
      .ms;

  it("pending", async () => {
    const [id] = await give("pending");
    const found = await record(String(id));
    expect(found).toEqual({
      id,
      kind: "pending",
      status: "pending",
      ...common,
      headers: { trace: "1" },
      carry: null,
      runCount: 0,
      failureCount: 0,
      createdAt: expect.any(Date),
      visibleAt: found.createdAt,
      finishedAt: null,
      claimedBy: null,
      leaseExpiresAt: null,
    });
    expect(Math.abs(found.createdAt.getTime() - (await clock()))).toBeLessThan(5_000);
    expect(Object.getPrototypeOf(found.headers)).toBe(Object.prototype);
  });

  it("pending and not due yet", async () => {
    const [id] = await give("scheduled", { runAt: Date.UTC(2999, 0, 1) });
    expect(await record(String(id))).toMatchObject({
      status: "pending",
      visibleAt: new Date(Date.UTC(2999, 0, 1)),
      finishedAt: null,
    });
  });

  it("claimed", async () => {
    const [id] = await give("claimed");
    const worker = await startWorker(store, { name: "holder", kinds: ["claimed"] });
    const kinds = [claimKind("claimed", { leaseMs: 60_000 })];
    const { jobs } = await store.claim(claimRequest(worker, kinds));
    const found = await record(String(id));
    expect(found).toMatchObject({
      status: "claimed",
      claimedBy: "holder",
      leaseExpiresAt: jobs[0]?.leaseExpiresAt,
      runCount: 1,
      failureCount: 0,
      visibleAt: found.createdAt,
      finishedAt: null,
    });
  });

  it("paused, then retried", async () => {
    const [id] = await give("paused");
    await run("paused", "paused");
    const paused = await record(String(id));
    expect(paused).toMatchObject({
      status: "pending",
      runCount: 1,
      failureCount: 0,
      carry: { page: 1 },
    });
    expect(Math.abs(Number(paused.visibleAt) - 3_600_000 - (await clock()))).toBeLessThan(5_000);
    await pool.query(
      "update venturi_queue set visible_at = now() where visible_at < now() + interval '2 h'",
    );
    await run("paused", "retried");
    expect(await record(String(id))).toMatchObject({
      status: "pending",
      runCount: 2,
      failureCount: 1,
    });
  });

  it("completed: its counts are those of its last entry", async () => {
    const [id] = await give("completed");
    await run("completed", "retried");
    await pool.query(
      "update venturi_queue set visible_at = now() where visible_at < now() + interval '2 h'",
    );
    await run("completed", "completed");
    const { entries } = await store.readJournal({ jobId: String(id) });
    expect(await record(String(id))).toMatchObject({
      status: "completed",
      ...common,
      carry: null,
      runCount: 2,
      failureCount: 1,
      visibleAt: null,
      finishedAt: entries.at(-1)?.recordedAt,
      claimedBy: null,
      leaseExpiresAt: null,
    });
  });

  it("dead: it keeps the carry that was stored", async () => {
    const [id] = await give("dead");
    await run("dead", "paused");
    await pool.query(
      "update venturi_queue set visible_at = now() where visible_at < now() + interval '2 h'",
    );
    await run("dead", "dead");
    const { entries } = await store.readJournal({ jobId: String(id) });
    expect(await record(String(id))).toMatchObject({
      status: "dead",
      ...common,
      carry: { page: 1 },
      runCount: 2,
      failureCount: 1,
      visibleAt: null,
      finishedAt: entries.at(-1)?.recordedAt,
    });
  });

  it("cancelled", async () => {
    const [id] = await give("cancelled");
    expect(await store.cancel({ id: String(id) })).toEqual({ applied: true });
    expect(await record(String(id))).toMatchObject({
      status: "cancelled",
      ...common,
      runCount: 0,
      visibleAt: null,
      finishedAt: expect.any(Date),
    });
  });

  it("unknown: null", async () => {
    expect(await store.findJob({ id: newId() })).toEqual({ job: null });
  });

  it("merged into: as the merge left it", async () => {
    const [id] = await give("merged");
    const [merged] = await give("merged", { payload: "[2]", priority: "low", headers: null });
    expect(merged).toBe(id);
    const found = await record(String(id));
    expect(found).toMatchObject({ payload: [2], priority: "low", status: "pending" });
    expect(found.headers).toEqual({});
  });
});

describe("filters", () => {
  let all: readonly JobRecord[];
  beforeAll(async () => {
    for (const kind of ["a", "b", "c"]) {
      const ids = Array.from({ length: 6 }, newId).sort(() => Math.random() - 0.5);
      await enqueue(store, ...ids.map((id) => job(kind, { id })));
      await run(kind, "completed", "dead", "paused", "retried");
      const [live] = await list({ kind, status: "pending" });
      if (kind === "a") await store.cancel({ id: String(live?.id) });
      const worker = await startWorker(store, { kinds: [kind] });
      await store.claim(claimRequest(worker, [kind], { limit: 1 }));
    }
    all = await list({ limit: 1_000 });
  });

  it("of none list everything, newest first by id", async () => {
    const { rows } = await pool.query(
      "select venturi_ulid(id) as id from venturi_jobs order by id desc",
    );
    expect(all.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    for (const status of jobStatuses) expect(all.map((some) => some.status)).toContain(status);
  });

  it("of nothing list nothing", async () => {
    expect(await list({ status: [] })).toEqual([]);
    expect(await list({ kind: [] })).toEqual([]);
    expect(await list({ ids: [] })).toEqual([]);
    expect(await list({ kind: "absent" })).toEqual([]);
    expect(await list({ ids: [newId()] })).toEqual([]);
  });

  it("narrow in every combination as their members say", async () => {
    const finished = all.flatMap(({ finishedAt }) => (finishedAt === null ? [] : [finishedAt]));
    const instant = fc.option(fc.constantFrom(...finished), { nil: undefined });
    const filters = fc.record({
      status: fc.option(fc.subarray([...jobStatuses]), { nil: undefined }),
      kind: fc.option(fc.subarray(["a", "b", "c", "completed", "absent"]), { nil: undefined }),
      ids: fc.option(fc.subarray(all.map(({ id }) => id)), { nil: undefined }),
      finishedSince: instant,
      finishedUntil: instant,
      before: fc.option(fc.constantFrom(...all.map(({ id }) => id)), { nil: undefined }),
      limit: fc.constantFrom(1, 3, 1_000),
    });
    await fc.assert(
      fc.asyncProperty(filters, async ({ before, limit, ...given }) => {
        const filter = Object.fromEntries(
          Object.entries(given).filter(([, value]) => value !== undefined),
        );
        const query = { ...resolveJobFilter(filter), before: before ?? null, limit };
        const { status, kind, ids, finishedSince, finishedUntil } = given;
        const expected = all.filter(
          (some) =>
            (status?.includes(some.status) ?? true) &&
            (kind?.includes(some.kind) ?? true) &&
            (ids?.includes(some.id) ?? true) &&
            (before === undefined || some.id < before) &&
            (finishedSince === undefined ||
              (some.finishedAt !== null && some.finishedAt >= finishedSince)) &&
            (finishedUntil === undefined ||
              (some.finishedAt !== null && some.finishedAt < finishedUntil)),
        );
        expect((await store.queryJobs(query)).jobs).toEqual(expected.slice(0, limit));
      }),
      { numRuns: 300 },
    );
  });

  it("take a range of finish times that begins with its start and ends before its end", async () => {
    const some = all.find(({ status }) => status === "completed");
    const at = some?.finishedAt as Date;
    const ids = [String(some?.id)];
    const after = new Date(at.getTime() + 1);
    expect(await list({ ids, finishedSince: at, finishedUntil: after })).toHaveLength(1);
    expect(await list({ ids, finishedSince: after })).toHaveLength(0);
    expect(await list({ ids, finishedUntil: at })).toHaveLength(0);
  });

  it("do not take a job that was dead in the range and has been put back", async () => {
    const dead = all.find(({ status, kind }) => status === "dead" && kind === "c");
    const filter = { finishedSince: dead?.finishedAt as Date, kind: "c" };
    const ids = async () => (await list(filter)).map(({ id }) => id);
    expect(await ids()).toContain(dead?.id);
    expect(await store.retry({ id: String(dead?.id) })).toEqual({ applied: true });
    expect(await ids()).not.toContain(dead?.id);
    expect(await record(String(dead?.id))).toMatchObject({
      status: "pending",
      failureCount: 0,
      runCount: 1,
    });
    await expectInvariants(pool);
  });
});

describe("pages", () => {
  const kinds = ["page a", "page b"];
  let ids: readonly JobId[];
  beforeAll(async () => {
    ids = Array.from({ length: 10 }, newId);
    const shuffled = [3, 9, 0, 7, 1, 8, 2, 5, 4, 6];
    await enqueue(
      store,
      ...shuffled.map((n) => job(kinds[n % 2] as string, { id: ids[n] as string })),
    );
  });

  async function walk(filter: JobFilter): Promise<JobId[][]> {
    const pages: JobId[][] = [];
    let cursor: string | undefined;
    do {
      const found = await page({ ...filter, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(found.jobs.map(({ id }) => id));
      cursor = found.nextCursor;
    } while (cursor !== undefined);
    return pages;
  }

  it("of three over ten jobs show each once, newest first", async () => {
    const pages = await walk({ kind: kinds, limit: 3 });
    expect(pages.map((some) => some.length)).toEqual([3, 3, 3, 1]);
    expect(pages.flat()).toEqual([...ids].reverse());
  });

  it("of one kind keep its order", async () => {
    const pages = await walk({ kind: "page a", limit: 3 });
    expect(pages.map((some) => some.length)).toEqual([3, 2]);
    expect(pages.flat()).toEqual([8, 6, 4, 2, 0].map((n) => ids[n]));
  });

  it("end without a cursor where the last one is full", async () => {
    expect((await walk({ kind: kinds, limit: 5 })).map((some) => some.length)).toEqual([5, 5]);
    expect((await walk({ kind: kinds, limit: 10 })).map((some) => some.length)).toEqual([10]);
  });

  it("go on behind their cursor whatever has been enqueued or ended since", async () => {
    const first = await page({ kind: kinds, limit: 4 });
    await enqueue(store, job("page a"), job("page b"));
    await run("page b", "completed");
    const rest = await page({ kind: kinds, limit: 100, cursor: String(first.nextCursor) });
    expect([...first.jobs, ...rest.jobs].map(({ id }) => id)).toEqual([...ids].reverse());
  });
});

it("a signal that aborts ends the waiting", async () => {
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await expect(store.queryJobs({ ...resolveJobFilter({}), signal })).rejects.toBe(reason);
  await expect(store.findJob({ id: newId(), signal })).rejects.toBe(reason);
  await expect(store.readJournal({ jobId: newId(), signal })).rejects.toBe(reason);
});
