import { type ClaimedJob, FAR_FUTURE_MS } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { Kysely, PostgresDialect } from "kysely";
import { beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { removeJobs } from "./testing/backlog.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import { claimRequest, enqueue, job, startWorker } from "./testing/store-fixture.ts";

// Whatever somebody has written into a row by hand, each of the statements that claim brings it, and says the same.

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
beforeEach(() => removeJobs(pool));

const anyText = fc.oneof(
  fc.constantFrom(
    '"',
    "\\",
    '\\\\"',
    "\u2028\u2029",
    "\u007f",
    "</script>",
    "'; drop",
    "\u{1f600}",
    "null",
  ),
  fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "")),
);
const anyJson = fc.oneof(
  anyText.map((text) => JSON.stringify({ [text]: [text] })),
  fc.constantFrom(
    "null",
    "0",
    "-0",
    "1e400",
    "123456789012345678901234567890.5",
    "[]",
    '"x"',
    "true",
  ),
);
const anyRow = fc.record({
  lease: fc.constantFrom(
    null,
    "NaN",
    "Infinity",
    "-Infinity",
    "-1",
    "0",
    "100",
    "250.5",
    "1e300",
    "5e-324",
  ),
  visibleAt: fc.constantFrom(
    "now()",
    "'-infinity'",
    "'infinity'",
    "'0044-03-15 BC'",
    "'294000-01-01'",
  ),
  failureCount: fc.constantFrom(0, 1, -1, 2_147_483_647, -2_147_483_648),
  carry: fc.option(anyJson),
  headers: fc.option(fc.dictionary(anyText, anyText, { maxKeys: 3 })),
  isBodyGone: fc.constantFrom(false, false, false, true),
});

function leaseOf(lease: string | null): number {
  if (lease === null) return 900_000;
  const ms = Number(lease);
  return Number.isNaN(ms) ? 3e12 : Math.min(Math.max(ms, 100), 3e12);
}

const dues: Readonly<Record<string, number>> = {
  "'-infinity'": 0,
  "'0044-03-15 BC'": 0,
  "'infinity'": FAR_FUTURE_MS,
  "'294000-01-01'": FAR_FUTURE_MS,
};

describe.each(["a pool", "Kysely"])("over %s", (source) => {
  const store = new PostgresStore(source === "Kysely" ? { db } : { pool: recorder });

  it.each(["claim", "claim_all", "claim_hinted"])(
    "by %s",
    async (verb) => {
      await fc.assert(
        fc.asyncProperty(anyRow, async (row) => {
          await removeJobs(pool);
          const worker = await startWorker(store);
          const claim = (hint?: string) =>
            store.claim(claimRequest(worker, ["a"], hint === undefined ? {} : { hint }));
          if (verb !== "claim") await claim();
          const [id = ""] = await enqueue(store, job("a", { payload: '{"p": 1}' }));
          await pool.query(
            `update venturi_queue set visible_at = ${row.visibleAt}, lease_ms = $1, failure_count = $2, carry = $3`,
            [row.lease, row.failureCount, row.carry],
          );
          const { headers } = row;
          await pool.query("update venturi_jobs set headers = $1", [
            headers === null ? null : JSON.stringify(headers),
          ]);
          if (row.isBodyGone) await pool.query("delete from venturi_jobs");
          const before = Date.now();
          let jobs: readonly ClaimedJob[] = [];
          const queries = await recorder.queriesOf(async () => {
            jobs = (await claim(verb === "claim_hinted" ? id : undefined)).jobs;
          });
          if (source !== "Kysely") expect(queries.map(verbOf).at(-1)).toBe(verb);
          expect(jobs).toHaveLength(1);
          const [got] = jobs as [ClaimedJob];
          const leaseMs = leaseOf(row.lease);
          expect(got).toMatchObject({ id, kind: "a", runCount: 1, priority: "normal" });
          expect(got).toMatchObject({ leaseMs, failureCount: row.failureCount });
          expect(got.payload).toBe(row.isBodyGone ? "" : '{"p": 1}');
          const { rows } = await pool.query(
            "select carry::text, lease_expires_at from venturi_queue",
          );
          expect(got.carry).toBe(rows[0].carry);
          if (headers === null || row.isBodyGone) expect(got.headers).toBeNull();
          else expect(got.headers).toEqual(headers);
          // As long as the row says, to the microseconds that a date does not have.
          const apart = got.leaseExpiresAt.getTime() - rows[0].lease_expires_at.getTime();
          expect(Math.abs(apart)).toBeLessThanOrEqual(1);
          const dueMs = dues[row.visibleAt];
          if (dueMs === undefined) expect(got.latencyMs).toBeLessThan(60_000);
          else expect(Math.abs(before - dueMs - got.latencyMs)).toBeLessThan(60_000);
        }),
        { numRuns: 60 },
      );
    },
    60_000,
  );
});
