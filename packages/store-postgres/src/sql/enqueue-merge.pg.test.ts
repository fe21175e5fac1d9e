import type { JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId, journalOf, liveJobs } from "../testing/bare-sql.ts";
import { claimRequest, newId, settlement, startWorker } from "../testing/store-fixture.ts";
import { tableAccesses } from "../testing/table-accesses.ts";

const { url, pool } = await testDatabase();
const store = new PostgresStore({ pool });

beforeEach(() => removeJobs(pool));
afterAll(() => expectInvariants(pool));

type Merge = "keep" | "replace" | "independent";
const merges: readonly Merge[] = ["keep", "replace", "independent"];

const keyed = (changes: object = {}) => ({ kind: "k", dedup_key: "key", ...changes });

async function claimAll() {
  const worker = await startWorker(store, { kinds: ["k"] });
  const { jobs } = await store.claim(claimRequest(worker, ["k"]));
  return {
    jobs,
    settle: (outcome: "completed" | "dead" | "paused", carry: string | null = null) =>
      store.settle({ worker, settlements: jobs.map((job) => settlement(job, outcome, { carry })) }),
  };
}

describe("every order of three merges", () => {
  const orders = merges.flatMap((a) =>
    merges.flatMap((b) => merges.map((c) => [a, b, c] as const)),
  );

  /** What must become of jobs of one key, by the rules: the candidate is the first that is pending. */
  function expected(ids: readonly JobId[], order: readonly Merge[]) {
    const pending: { id: JobId; payload: number; merged: string[] }[] = [];
    const outcomes = order.map((merge, index) => {
      const id = ids[index] as JobId;
      const [candidate] = pending;
      if (merge === "independent" || candidate === undefined) {
        pending.push({ id, payload: index, merged: [] });
        return { id, outcome: "enqueued" };
      }
      candidate.merged.push(`${merge} ${id}`);
      if (merge === "replace") candidate.payload = index;
      return { id: candidate.id, outcome: merge === "keep" ? "kept" : "replaced" };
    });
    return { outcomes, pending };
  }

  it.each(orders)(
    "%s, %s, %s: in one call, in three, and behind others of the key",
    async (...order) => {
      for (const split of [false, true]) {
        for (const before of [[], ["replace"], ["independent", "independent"]] as const) {
          await removeJobs(pool);
          const all = [...before, ...order];
          const ids = all.map(() => newId());
          const jobs = all.map((merge, payload) =>
            keyed({ payload, merge, ...bareId(ids[payload]) }),
          );
          const calls = split
            ? jobs.map((job) => [job])
            : [jobs.slice(0, before.length), jobs.slice(before.length)];
          const enqueued = [];
          for (const call of calls) enqueued.push(...(await bareEnqueue(pool, call)));
          const { outcomes, pending } = expected(ids, all);
          expect(enqueued.map(({ id, outcome }) => ({ id, outcome }))).toEqual(outcomes);
          const stored = await liveJobs(pool);
          expect(stored.map(({ id, payload }) => ({ id, payload }))).toEqual(
            pending.map(({ id, payload }) => ({ id, payload })),
          );
          for (const { id, merged } of pending) {
            expect(await journalOf(pool, id)).toEqual(
              merged.map((text) => {
                const [note, incoming] = text.split(" ");
                return { outcome: "merged", note, incoming, run_no: 0 };
              }),
            );
          }
        }
      }
    },
  );
});

describe("keep", () => {
  it("rewrites nothing and leaves one merged entry", async () => {
    await bareEnqueue(pool, [
      keyed({ payload: 1, priority: "low", delay_ms: 60_000, headers: { a: "1" } }),
    ]);
    const before = await liveJobs(pool);
    const incoming = newId();
    const merged = keyed({
      payload: 2,
      priority: "high",
      merge: "keep",
      lease_ms: 5,
      headers: { b: "2" },
    });
    const [kept] = await bareEnqueue(pool, [{ ...merged, ...bareId(incoming) }]);
    expect(kept).toEqual({ ord: 1, id: before[0]?.id, outcome: "kept" });
    expect(await liveJobs(pool)).toEqual(before);
    expect(await journalOf(pool, kept?.id ?? "")).toEqual([
      { outcome: "merged", note: "keep", run_no: 0, incoming },
    ]);
  });

  it("updates no row of queue, bodies or keys, however often", async () => {
    await bareEnqueue(pool, [keyed()]);
    const accesses = await tableAccesses(url, async (client) => {
      for (let i = 0; i < 10; i += 1)
        await bareEnqueue(
          client,
          Array.from({ length: 10 }, () => keyed({ merge: "keep" })),
        );
    });
    const written = accesses.filter((at) => at.inserted + at.updated + at.deleted > 0);
    expect(written).toMatchObject([{ table: "journal", inserted: 100, updated: 0, deleted: 0 }]);
  });

  it("holds off a concurrent claim until it is decided", async () => {
    const [job] = await bareEnqueue(pool, [keyed()]);
    const client = await pool.connect();
    await client.query("begin");
    await bareEnqueue(client, [keyed({ merge: "keep" })]);
    const worker = await startWorker(store, { kinds: ["k"] });
    const request = claimRequest(worker, ["k"]);
    expect(await store.claim(request)).toMatchObject({ jobs: [], blocked: true });
    await client.query("commit");
    client.release();
    expect((await store.claim(request)).jobs.map(({ id }) => id)).toEqual([job?.id]);
  });

  it("leaves a payload that no schema would take", async () => {
    await bareEnqueue(pool, [keyed({ payload: { bad: 1 } })]);
    await pool.query(`update venturi_jobs set payload = '1e400'`);
    await bareEnqueue(pool, [keyed({ merge: "keep" })]);
    const { rows } = await pool.query(
      "select payload::text = (1e400::numeric)::text as exact from venturi_jobs",
    );
    expect(rows).toEqual([{ exact: true }]);
  });
});

describe("replace", () => {
  it("is what happens unless merge says otherwise", async () => {
    await bareEnqueue(pool, [keyed({ payload: 1 })]);
    const [second] = await bareEnqueue(pool, [keyed({ payload: 2 })]);
    expect(second?.outcome).toBe("replaced");
    expect((await liveJobs(pool)).map(({ payload }) => payload)).toEqual([2]);
  });

  it("takes payload, priority, headers and lease from the incoming job, also where it has none", async () => {
    await bareEnqueue(pool, [
      keyed({ payload: 1, priority: "low", headers: { a: "1" }, lease_ms: 7000 }),
    ]);
    const [before] = await liveJobs(pool);
    await bareEnqueue(pool, [
      keyed({ payload: [2], priority: "high", headers: { b: "2" }, lease_ms: 9000 }),
    ]);
    expect(await liveJobs(pool)).toMatchObject(
      [
        {
          ...before,
          payload: [2],
          priority: 0,
          headers: { b: "2" },
          lease_ms: 9000,
          xmin: /./,
          body_xmin: /./,
        },
      ].map(({ xmin: _, body_xmin: __, ...rest }) => rest),
    );
    await bareEnqueue(pool, [keyed()]);
    expect(await liveJobs(pool)).toMatchObject([
      {
        id: before?.id,
        seq: before?.seq,
        payload: null,
        priority: 1,
        headers: null,
        lease_ms: null,
      },
    ]);
  });

  it("repairs a payload that no schema would take", async () => {
    await bareEnqueue(pool, [keyed({ payload: { bad: 1 } })]);
    await bareEnqueue(pool, [keyed({ payload: { good: 1 } })]);
    expect((await liveJobs(pool)).map(({ payload }) => payload)).toEqual([{ good: 1 }]);
  });

  it("puts the carry of a paused job back to its start; runs, failures and journal stay", async () => {
    const [job] = await bareEnqueue(pool, [keyed({ payload: 1 })]);
    const { settle } = await claimAll();
    await settle("paused", '{"page":3}');
    expect(await liveJobs(pool)).toMatchObject([{ carry: { page: 3 }, run_count: 1 }]);
    await bareEnqueue(pool, [keyed({ payload: 2 })]);
    expect(await liveJobs(pool)).toMatchObject([
      { id: job?.id, carry: null, payload: 2, run_count: 1 },
    ]);
    expect(await journalOf(pool, job?.id ?? "")).toMatchObject([
      { outcome: "paused", run_no: 1 },
      { outcome: "merged", run_no: 1 },
    ]);
  });

  it.each([
    ["an earlier time", 60_000, 30_000, 30_000],
    ["its own time where the incoming is later", 30_000, 60_000, 30_000],
    ["now where the incoming is due", 60_000, 0, 0],
    ["its own time where it was due already", 0, 60_000, 0],
  ])("is visible at %s", async (_, first, second, ms) => {
    await bareEnqueue(pool, [keyed({ delay_ms: first })]);
    const [before] = await liveJobs(pool);
    const [{ clock }] = (
      await pool.query("select extract(epoch from clock_timestamp())::float8 * 1000 as clock")
    ).rows;
    await bareEnqueue(pool, [keyed({ delay_ms: second })]);
    const [after] = await liveJobs(pool);
    const from = first <= second ? (before?.created_at.getTime() ?? 0) : clock;
    expect(Math.abs((after?.visible_at.getTime() ?? 0) - from - ms)).toBeLessThan(500);
    expect(after?.scheduled).toBe(ms > 0);
  });

  it("gives a job that it makes due a new place in the order, and no other", async () => {
    await bareEnqueue(pool, [keyed({ payload: "parked", delay_ms: 60_000 })]);
    await bareEnqueue(pool, [
      keyed({ payload: "due", dedup_key: "2" }),
      keyed({ payload: "later", dedup_key: "3", delay_ms: 60_000 }),
    ]);
    const payloads = async () => (await liveJobs(pool)).map(({ payload }) => payload);
    expect(await payloads()).toEqual(["parked", "due", "later"]);
    await bareEnqueue(pool, [keyed({ payload: "parked", delay_ms: 30_000 })]);
    await bareEnqueue(pool, [keyed({ payload: "due", dedup_key: "2" })]);
    expect(await payloads()).toEqual(["parked", "due", "later"]);
    await bareEnqueue(pool, [keyed({ payload: "parked" })]);
    expect(await payloads()).toEqual(["due", "later", "parked"]);
    const { jobs } = await claimAll();
    expect(jobs.map(({ payload }) => payload)).toEqual(['"due"', '"parked"']);
  });
});

describe("the candidate", () => {
  it("is the pending job that arrived first", async () => {
    const jobs = [1, 2, 3].map((payload) => keyed({ payload, merge: "independent" }));
    const [first, second] = await bareEnqueue(pool, jobs);
    expect(await bareEnqueue(pool, [keyed({ payload: "new" })])).toMatchObject([{ id: first?.id }]);
    const worker = await startWorker(store, { kinds: ["k"] });
    await store.claim(claimRequest(worker, ["k"], { limit: 1 }));
    expect(await bareEnqueue(pool, [keyed({ merge: "keep" })])).toMatchObject([{ id: second?.id }]);
    expect((await liveJobs(pool)).map(({ payload }) => payload)).toEqual(["new", 2, 3]);
  });

  it.each(merges)("is never a claimed, completed or dead job (%s)", async (merge) => {
    const again = async () => (await bareEnqueue(pool, [keyed({ merge })]))[0];
    const first = await again();
    const claimed = await claimAll();
    const second = await again();
    expect(second).toMatchObject({ outcome: "enqueued" });
    await claimed.settle("completed");
    const next = await claimAll();
    await next.settle("dead");
    const third = await again();
    expect(third).toMatchObject({ outcome: "enqueued" });
    expect(new Set([first?.id, second?.id, third?.id]).size).toBe(3);
    for (const gone of [first, second])
      expect(await journalOf(pool, gone?.id ?? "")).toHaveLength(1);
  });

  it("has the same kind and the same key, the empty one included", async () => {
    const jobs = [
      keyed(),
      keyed({ kind: "other" }),
      keyed({ dedup_key: "" }),
      keyed({ dedup_key: null }),
      { kind: "k" },
      keyed({ dedup_key: "KEY" }),
    ];
    for (const job of jobs)
      expect(await bareEnqueue(pool, [job])).toMatchObject([{ outcome: "enqueued" }]);
    expect(await bareEnqueue(pool, jobs)).toMatchObject(
      ["replaced", "replaced", "replaced", "enqueued", "enqueued", "replaced"].map((outcome) => ({
        outcome,
      })),
    );
  });

  it("is found beside 20,000 finished jobs of its key, in the blocks of an index", async () => {
    await pool.query(`insert into venturi_kinds (name) values ('k') on conflict do nothing`);
    await pool.query(`with job as (
        select gen_random_uuid() as id, (select id from venturi_kinds where name = 'k') as kind from generate_series(1, 20000)
      ), body as (
        insert into venturi_jobs (id, created_at, kind_id, priority, dedup_key, payload) select id, now(), kind, 1, 'key', '1' from job
      ) insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
        select now(), now(), id, kind, 1, 0, 'c' from job`);
    const accesses = await tableAccesses(url, async (client) => {
      for (const outcome of [
        "enqueued",
        "replaced",
        "replaced",
        "replaced",
        "replaced",
        "replaced",
      ])
        expect(await bareEnqueue(client, [keyed()])).toMatchObject([{ outcome }]);
    });
    expect(accesses.filter(({ walked }) => walked > 2_000)).toEqual([]);
    await removeJobs(pool);
  });
});

it("merge without a key means nothing", async () => {
  const jobs = merges.map((merge) => ({ kind: "k", merge }));
  expect(await bareEnqueue(pool, jobs)).toMatchObject(jobs.map(() => ({ outcome: "enqueued" })));
});
