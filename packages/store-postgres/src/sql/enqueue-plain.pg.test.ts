import { type JobId, toUuid } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId, liveJobs } from "../testing/bare-sql.ts";
import { newId } from "../testing/store-fixture.ts";
import { until } from "../testing/until.ts";

const { url, pool } = await testDatabase();
const others = new pg.Pool({ connectionString: url, max: 2 });

beforeEach(() => removeJobs(pool));
afterAll(async () => {
  await others.end();
  await expectInvariants(pool);
});

/** Stored before every call, and new to it. */
const known = newId();
const fresh = Array.from({ length: 4 }, () => newId());

const anyId = fc.constantFrom(...fresh.map(toUuid), null);
const anyOptions = fc.record(
  {
    payload: fc.jsonValue(),
    priority: fc.constantFrom("high", "normal", "low", null),
    headers: fc.constantFrom({ a: "1" }, {}, null),
    lease_ms: fc.constantFrom(0, 1234.5, 1e300, "Infinity", null),
    delay_ms: fc.constantFrom(0, -5, 1_500, "-Infinity", "Infinity", null),
  },
  { requiredKeys: [] },
);
const anyRunAt = fc.record({
  kind: fc.constant("k"),
  run_at: fc.constantFrom("2999-12-31T23:59:59.123456Z", "1970-01-01T00:00:00Z", "infinity", null),
});
const anyGood = fc.oneof(
  fc.tuple(fc.record({ kind: fc.constantFrom("k", "k", "l", "m") }), anyOptions),
  fc.tuple(fc.record({ kind: fc.constant("k"), id: anyId }), anyOptions),
  fc.tuple(anyRunAt, fc.record({ payload: fc.jsonValue() })),
);
/** What is refused, known already, or for the other path to look at. */
const odd: readonly unknown[] = [
  { kind: "k", id: toUuid(known) },
  { kind: "other", id: toUuid(known) },
  { kind: "k", merge: "keep" },
  { kind: "k", merge: "with" },
  { kind: "k", merge: null },
  { kind: "k", decision: { action: "independent" } },
  { kind: "k", id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" },
  { kind: "k", id: 5 },
  { kind: "k", priority: "urgent" },
  { kind: "k", priority: 1 },
  { kind: "k", delay_ms: 1, run_at: "2999-01-01T00:00:00Z" },
  { kind: "k", delay_ms: "NaN" },
  { kind: "k", delay_ms: "soon" },
  { kind: "k", delay_ms: true },
  { kind: "k", lease_ms: "NaN" },
  { kind: "k", lease_ms: -1 },
  { kind: "k", lease_ms: "1e999" },
  { kind: "k", run_at: "soon" },
  { kind: "k", run_at: {} },
  { kind: "k", headers: ["a"] },
  { kind: "k", headers: "a" },
  { kind: "k", headers: { a: "1", b: null } },
  { kind: "k", headers: { a: "1", b: 5 } },
  { kind: "k", headers: { a: ["1"] } },
  { kind: 5 },
  { kind: ["k"] },
  { kind: "" },
  { kind: null },
  { kind: "x".repeat(201) },
  { kind: "line\nbreak" },
  {},
  5,
  null,
  "kind",
  ["kind", "priority"],
];

/** What a call answers, or its error, and what it leaves; the time of a due job is that of its creation. */
async function outcomeOf(jobs: readonly unknown[]) {
  await removeJobs(pool);
  await bareEnqueue(pool, [{ kind: "k", ...bareId(known) }]);
  const given = new Set<JobId>([known, ...fresh]);
  const named = (id: JobId) => (given.has(id) ? id : "its own");
  const answer = await bareEnqueue(pool, jobs).then(
    (rows) => rows.map(({ ord, id, outcome }) => ({ ord, id: named(id), outcome })),
    ({ code, message, detail, hint }) => ({ code, message, detail, hint }),
  );
  const rows = (await liveJobs(pool, "q.dedup_key is null")).map((row) => ({
    ...row,
    id: named(row.id),
    created_at: undefined,
    visible_at:
      row.visible_at.getUTCFullYear() > 2_900
        ? row.visible_at
        : row.visible_at.getTime() - row.created_at.getTime(),
    seq: undefined,
    xmin: undefined,
    body_xmin: undefined,
  }));
  return { answer, rows };
}

async function expectSameBesideKey(jobs: readonly unknown[]): Promise<void> {
  const plain = await outcomeOf(jobs);
  const beside = await outcomeOf([...jobs, { kind: "k", dedup_key: "beside" }]);
  const answer = Array.isArray(beside.answer) ? beside.answer.slice(0, -1) : beside.answer;
  expect(plain).toEqual({ ...beside, answer });
}

describe("jobs without a key", () => {
  it("are stored and answered as they are beside a job with one", async () => {
    const call = fc.array(anyGood.map(([first, second]) => ({ ...first, ...second })));
    await fc.assert(fc.asyncProperty(call, expectSameBesideKey), { numRuns: 50 });
  }, 120_000);

  it.each(odd.map((job) => [job]))("and %j among them too", async (job) => {
    await expectSameBesideKey([{ kind: "k", payload: 1 }, job]);
    await expectSameBesideKey([job, { kind: "l" }, { kind: "k", priority: "high" }, {}]);
  });

  it("kinds whose names only a hand can have written are refused on their own too", async () => {
    const names = ["", "z".repeat(201)];
    await pool.query("insert into venturi_kinds (name) select unnest($1::text[])", [names]);
    for (const kind of names) {
      await expectSameBesideKey([{ kind }]);
      await expectSameBesideKey([{ kind: "k" }, { kind }]);
      await expect(bareEnqueue(pool, [{ kind }])).rejects.toMatchObject({ code: "VT002" });
    }
    await pool.query("delete from venturi_kinds where name = any ($1)", [names]);
  });

  it.each([{}, "kind", 5, null])("%j is no list of them", async (jobs) => {
    await expect(bareEnqueue(pool, jobs)).rejects.toMatchObject({
      code: "VT002",
      message: "cannot enqueue: jobs must be an array",
    });
  });
});

describe("an id that another open transaction has just stored", () => {
  /** Two calls with the same id and without a key; the second waits for the end of the first. */
  async function race(end: "commit" | "rollback") {
    const again = [{ kind: "k" }, { kind: "k", ...bareId(known) }];
    await bareEnqueue(pool, [{ kind: "k" }]);
    const [first, second] = await Promise.all([others.connect(), others.connect()]);
    await first.query("begin");
    await bareEnqueue(first, again);
    const [{ pid }] = (await second.query("select pg_backend_pid() as pid")).rows;
    const waiting = bareEnqueue(second, again).catch((error: unknown) => error);
    const state = "select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'";
    await until(async () => (await pool.query(state, [pid])).rows.length === 1);
    await first.query(end);
    const result = await waiting;
    first.release();
    second.release();
    return { again, result };
  }

  it("is a unique violation once that commits, and a repeat from then on", async () => {
    const { again, result } = await race("commit");
    expect(result).toMatchObject({ code: "23505" });
    expect(await liveJobs(pool)).toHaveLength(3);
    expect(await bareEnqueue(pool, again)).toMatchObject([
      { outcome: "enqueued" },
      { id: known, outcome: "repeated" },
    ]);
  });

  it("is stored once that rolls back", async () => {
    const { result } = await race("rollback");
    expect(result).toMatchObject([{ outcome: "enqueued" }, { id: known, outcome: "enqueued" }]);
    expect(await liveJobs(pool)).toHaveLength(3);
  });
});
