import { type JobId, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId, journalOf, liveJobs } from "../testing/bare-sql.ts";
import { failureOf } from "../testing/failure-of.ts";
import { claimRequest, job, newId, settlement, startWorker } from "../testing/store-fixture.ts";
import { tableAccesses } from "../testing/table-accesses.ts";

const { url, pool } = await testDatabase();
const store = new PostgresStore({ pool });

beforeEach(() => removeJobs(pool));
afterAll(() => expectInvariants(pool));

const keyed = (id: JobId, changes: object = {}) => ({
  kind: "k",
  dedup_key: "key",
  ...bareId(id),
  ...changes,
});

async function finish(outcome: "completed" | "dead") {
  const worker = await startWorker(store, { kinds: ["k"] });
  const { jobs } = await store.claim(claimRequest(worker, ["k"]));
  await store.settle({ worker, settlements: jobs.map((claimed) => settlement(claimed, outcome)) });
}

describe("an id that comes again", () => {
  it.each([
    ["pending", () => Promise.resolve()],
    ["completed", () => finish("completed")],
    ["dead", () => finish("dead")],
  ] as const)("returns its job, %s by now, and writes nothing", async (_, end) => {
    const id = newId();
    await bareEnqueue(pool, [{ kind: "k", payload: 1, ...bareId(id) }]);
    await end();
    const before = await liveJobs(pool);
    const again = { kind: "k", payload: 2, priority: "high", delay_ms: 5, ...bareId(id) };
    expect(await bareEnqueue(pool, [again])).toEqual([{ ord: 1, id, outcome: "repeated" }]);
    expect(await liveJobs(pool)).toEqual(before);
  });

  it.each(["keep", "replace", "independent"])(
    "with a key and %s neither merges with itself nor with others",
    async (merge) => {
      const [id, other] = [newId(), newId()];
      await bareEnqueue(pool, [keyed(id, { payload: 1 })]);
      await bareEnqueue(pool, [keyed(other, { merge: "independent" })]);
      const before = await liveJobs(pool);
      expect(await bareEnqueue(pool, [keyed(id, { merge, payload: 2 })])).toEqual([
        { ord: 1, id, outcome: "repeated" },
      ]);
      expect(await liveJobs(pool)).toEqual(before);
      expect(await journalOf(pool, id)).toEqual([]);
    },
  );

  it.each(["keep", "replace"])(
    "after it was merged away (%s) returns the job it went into",
    async (merge) => {
      const [id, incoming] = [newId(), newId()];
      await bareEnqueue(pool, [keyed(id, { payload: 1 })]);
      const first = await bareEnqueue(pool, [keyed(incoming, { merge, payload: 2 })]);
      expect(first).toMatchObject([{ id }]);
      const before = await liveJobs(pool);
      for (const end of [() => undefined, () => finish("completed")]) {
        await end();
        expect(await bareEnqueue(pool, [keyed(incoming, { merge, payload: 3 })])).toEqual([
          { ord: 1, id, outcome: "repeated" },
        ]);
      }
      expect(await liveJobs(pool)).toEqual([]);
      expect(before).toMatchObject([{ payload: merge === "keep" ? 1 : 2 }]);
      expect(await journalOf(pool, id)).toMatchObject([
        { outcome: "merged" },
        { outcome: "completed" },
      ]);
    },
  );

  it("among new ones is recognised alone", async () => {
    const [id, incoming] = [newId(), newId()];
    await bareEnqueue(pool, [keyed(id), keyed(incoming)]);
    const jobs = [{ kind: "k" }, keyed(incoming), keyed(newId(), { merge: "keep" }), keyed(id)];
    const enqueued = await bareEnqueue(pool, jobs);
    expect(enqueued.map(({ outcome }) => outcome)).toEqual([
      "enqueued",
      "repeated",
      "kept",
      "repeated",
    ]);
    expect(enqueued.slice(1).map((job) => job.id)).toEqual([id, id, id]);
  });
});

describe("an id that stands twice in one call", () => {
  it("is one job, and the second place a repeat", async () => {
    const id = newId();
    const jobs = [
      { kind: "k", payload: 1, ...bareId(id) },
      { kind: "k" },
      { kind: "k", payload: 2, ...bareId(id) },
    ];
    const enqueued = await bareEnqueue(pool, jobs);
    expect(enqueued).toMatchObject([
      { id, outcome: "enqueued" },
      { outcome: "enqueued" },
      { id, outcome: "repeated" },
    ]);
    expect((await liveJobs(pool)).map(({ payload }) => payload)).toEqual([1, null]);
  });

  it.each([
    ["keep", "kept"],
    ["replace", "replaced"],
    ["independent", "enqueued"],
  ])("with a key and %s returns both times where it went", async (merge, outcome) => {
    const [id, twice] = [newId(), newId()];
    await bareEnqueue(pool, [keyed(id)]);
    const place = keyed(twice, { merge });
    const survivor = merge === "independent" ? twice : id;
    expect(await bareEnqueue(pool, [place, place, place])).toEqual([
      { ord: 1, id: survivor, outcome },
      { ord: 2, id: survivor, outcome: "repeated" },
      { ord: 3, id: survivor, outcome: "repeated" },
    ]);
    expect(await bareEnqueue(pool, [place, place])).toMatchObject(
      [1, 2].map((ord) => ({ ord, id: survivor, outcome: "repeated" })),
    );
  });

  it("and for different jobs is a conflict", async () => {
    const id = newId();
    const jobs = [
      { kind: "k", ...bareId(id) },
      { kind: "other", ...bareId(id) },
    ];
    await expect(bareEnqueue(pool, jobs)).rejects.toMatchObject({
      code: "VT001",
      detail: toUuid(id),
    });
    expect(await liveJobs(pool)).toEqual([]);
  });
});

describe("an id that belongs to another job", () => {
  const others: [string, object][] = [
    ["of another kind", { kind: "other", dedup_key: "key" }],
    ["of another key", { kind: "k", dedup_key: "other" }],
    ["without a key", { kind: "k" }],
  ];

  it.each(others)("%s is VT001 and names it", async (_, other) => {
    const id = newId();
    await bareEnqueue(pool, [keyed(id)]);
    await expect(bareEnqueue(pool, [{ ...other, ...bareId(id) }])).rejects.toMatchObject({
      code: "VT001",
      detail: toUuid(id),
    });
  });

  it.each(others)("%s is VT001 also where it was merged away", async (_, other) => {
    const [id, incoming] = [newId(), newId()];
    await bareEnqueue(pool, [keyed(id), keyed(incoming)]);
    await expect(bareEnqueue(pool, [{ ...other, ...bareId(incoming) }])).rejects.toMatchObject({
      code: "VT001",
      detail: toUuid(incoming),
    });
  });

  it("through the store is id-conflict with the id", async () => {
    const id = newId();
    await store.enqueue({ jobs: [job("k", { id })] });
    const error = await failureOf(store.enqueue({ jobs: [job("k"), job("other", { id })] }));
    expect(error).toMatchObject({ code: "id-conflict", id, isRetryable: false });
  });
});

it.each([
  ["empty", ""],
  ["small", "analyze venturi_jobs, venturi_journal, venturi_queue, venturi_kinds"],
])(
  "a session whose plans were made on %s tables walks none of them when they have filled",
  async (_, analyze) => {
    const accesses = await tableAccesses(url, async (client) => {
      const call = () =>
        bareEnqueue(client, [keyed(newId(), { dedup_key: newId() }), { kind: "k" }]);
      for (let i = 0; i < 12; i += 1) await call();
      await client.query(analyze);
      for (let i = 0; i < 12; i += 1) await call();
      await client.query(`with job as materialized (
        select gen_random_uuid() as id, n, (select id from venturi_kinds where name = 'k') as kind from generate_series(1, 30000) n
      ), body as (
        insert into venturi_jobs (id, created_at, kind_id, priority, payload, dedup_key) select id, now(), kind, 1, '1', 'd' || n from job
      ), queue as (
        insert into venturi_queue (job_id, visible_at, kind_id, priority, dedup_key) select id, now(), kind, 1, 'd' || n from job
      ) insert into venturi_journal (recorded_at, job_id, kind_id, run_no, failure_count, outcome, incoming_id)
        select now(), id, kind, 0, 0, 'm', gen_random_uuid() from job`);
      for (let i = 0; i < 12; i += 1) await call();
      await bareEnqueue(client, [
        keyed(newId(), { dedup_key: "d7" }),
        keyed(newId(), { dedup_key: "d8", merge: "keep" }),
      ]);
    });
    const walked = accesses.filter(({ table, walked }) => walked > 2_000 && table !== "keys");
    expect(walked).toEqual([]);
  },
);
