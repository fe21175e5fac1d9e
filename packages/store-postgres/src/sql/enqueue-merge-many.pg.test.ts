import { openSession, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bareEnqueue, bareId, journalOf, liveJobs } from "../testing/bare-sql.ts";
import { newId } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();

let session: pg.Client;
beforeAll(async () => {
  session = await openSession(pool);
});
afterAll(() => session.end());

/** Work in a transaction that is undone. */
async function undone<T>(work: () => Promise<T>): Promise<T> {
  await session.query("begin");
  try {
    return await work();
  } finally {
    await session.query("rollback");
  }
}

/** How many rows of queue and bodies this session has updated, as far as that has not been counted elsewhere. */
async function updates(): Promise<readonly number[]> {
  const { rows } = await session.query(
    "select n_tup_upd::int as updates from pg_stat_xact_user_tables where relname in ('venturi_jobs', 'venturi_queue') order by relname",
  );
  return rows.map((row) => row.updates);
}

it.each([
  ["one key", () => 0],
  ["two keys, in turns", (n: number) => n % 2],
])("many merges of %s in one call write the rows of each once", async (_, keyOf) => {
  const jobs = Array.from({ length: 1_000 }, (__, n) => ({
    ...bareId(),
    kind: "k",
    payload: n,
    dedup_key: `key ${keyOf(n)}`,
    merge: n % 3 === 0 ? "keep" : "replace",
  }));
  const keys = new Set(jobs.map((job) => job.dedup_key)).size;
  await undone(async () => {
    const before = await updates();
    await bareEnqueue(session, jobs);
    expect(await updates()).toEqual(before.map((count) => count + keys));
    expect((await liveJobs(session)).map(({ payload }) => payload)).toEqual(
      keys === 1 ? [998] : [998, 997],
    );
  });
});

const later = ["2100-01-01T00:00:00Z", "2100-01-02T00:00:00Z", "2100-01-03T00:00:00Z"];
const job = fc.record({
  dedup_key: fc.constantFrom("a", "b"),
  merge: fc.constantFrom("keep", "replace", "replace", "independent"),
  priority: fc.constantFrom("high", "normal", "low"),
  run_at: fc.constantFrom(null, ...later),
  lease_ms: fc.constantFrom(null, 1_000, 2_000),
  headers: fc.constantFrom(null, { h: "1" }, { h: "2" }),
});

/** What there is after calls, each in its place, as far as it does not depend on when they were made. */
async function outcomeOf(calls: readonly (readonly object[])[]) {
  return undone(async () => {
    const enqueued = [];
    for (const call of calls) enqueued.push(...(await bareEnqueue(session, call)));
    const stored = await liveJobs(session);
    const { rows: versions } = await session.query(
      "select q.version, b.version as body from venturi_queue q join venturi_jobs b on b.id = q.job_id order by q.seq",
    );
    const journals = [];
    for (const { id } of stored) journals.push(await journalOf(session, id));
    return {
      enqueued: enqueued.map(({ id, outcome }) => ({ id, outcome })),
      versions,
      stored: stored.map(({ visible_at, created_at, seq, xmin, body_xmin, ...rest }) => ({
        ...rest,
        at: rest.scheduled ? visible_at : null,
      })),
      journals,
    };
  });
}

it("jobs that are merged in one call come to what they come to one by one", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(job, { minLength: 1, maxLength: 12 }), fc.nat(3), async (made, n) => {
      const jobs = made.map((each, payload) => ({
        ...each,
        ...bareId(newId()),
        kind: "k",
        payload,
      }));
      const before = jobs.slice(0, n).map((each) => [each]);
      const rest = jobs.slice(n);
      const apart = await outcomeOf([...before, ...rest.map((each) => [each])]);
      expect(await outcomeOf([...before, rest])).toEqual(apart);
    }),
    { numRuns: 150 },
  );
});
