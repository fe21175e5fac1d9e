import type { ClaimRequest, JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { beforeEach, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog } from "../testing/backlog.ts";
import { recordingPool, verbOf } from "../testing/recording-pool.ts";
import { claimRequest, enqueue, job, startWorker } from "../testing/store-fixture.ts";
import { updatesOf } from "../testing/update-counts.ts";

const { pool, url } = await testDatabase();
const total = 100_000;
const limit = 16;

beforeEach(async () => {
  for (const table of ["queue", "jobs", "workers"]) await pool.query(`truncate venturi_${table}`);
});

it.each([
  ["one kind", ["a"]],
  ["five kinds", ["a", "b", "c", "d", "e"]],
])(
  "four claimers over 100,000 jobs of %s: no claim is empty, every job is claimed once, in place",
  async (_, kinds) => {
    for (const kind of kinds) await addBacklog(pool, { kind, count: total / kinds.length });
    const before = await updatesOf(pool, "venturi_queue");

    const { claimed, early } = await race(kinds);

    expect(early).toBe(0);
    expect(claimed).toHaveLength(total);
    expect(new Set(claimed).size).toBe(total);
    const { rows } = await pool.query(
      "select count(*)::int4 as n from venturi_queue where claimed_by is not null and run_count = 1",
    );
    expect(rows).toEqual([{ n: total }]);
    await expectInvariants(pool);
    // What a claim changes stands in no index: the new row version stays on its page.
    const after = await updatesOf(pool, "venturi_queue", before.all + total);
    expect((after.hot - before.hot) / (after.all - before.all)).toBeGreaterThanOrEqual(0.95);
  },
  120_000,
);

it("four claimers of single jobs as they come: every job is claimed once, and claims cost one statement", async () => {
  const jobs = 600;
  const claimers = new pg.Pool({ connectionString: url, max: 4 });
  const recorder = recordingPool(claimers);
  const store = new PostgresStore({ pool: recorder });
  const claimed: string[] = [];
  let claims = 0;
  try {
    const workers = await Promise.all([1, 2, 3, 4].map(() => startWorker(store)));
    const sent = await recorder.queriesOf(async () => {
      const producer = new PostgresStore({ pool });
      const producing = (async () => {
        for (let n = 0; n < jobs; n += 1) await enqueue(producer, job("a"));
      })();
      await Promise.all(
        workers.map(async (worker) => {
          while (claimed.length < jobs) {
            claims += 1;
            const answer = await store.claim(claimRequest(worker, ["a", "b"], { limit }));
            for (const { id } of answer.jobs) claimed.push(id);
          }
        }),
      );
      await producing;
    });
    expect(new Set(claimed).size).toBe(jobs);
    expect(claimed).toHaveLength(jobs);
    const verbs = sent.map(verbOf).filter((verb) => verb === "claim" || verb === "claim_all");
    expect(verbs.filter((verb) => verb === "claim_all").length).toBeGreaterThan(verbs.length / 2);
    // One more only where more waited than a claim may take, which all four may find at once.
    expect(verbs.length - claims).toBeLessThanOrEqual((4 * jobs) / (limit + 1));
    await expectInvariants(pool);
  } finally {
    await claimers.end();
  }
}, 60_000);

it("four claimers who hear of each job by its name: every job is claimed once", async () => {
  const jobs = 400;
  const claimers = new pg.Pool({ connectionString: url, max: 4 });
  const recorder = recordingPool(claimers);
  const store = new PostgresStore({ pool: recorder });
  const claimed: string[] = [];
  try {
    const sent = await recorder.queriesOf(async () => {
      const producer = new PostgresStore({ pool });
      const workers = await Promise.all([1, 2, 3, 4].map(() => startWorker(store)));
      const claim = async (worker: number, changes: Partial<ClaimRequest> = {}) => {
        const answer = await store.claim(claimRequest(worker, ["a"], { limit, ...changes }));
        for (const { id } of answer.jobs) claimed.push(id);
      };
      for (let n = 0; n < jobs; n += 1) {
        const [hint] = await enqueue(producer, job("a"));
        await Promise.all(workers.map((worker) => claim(worker, { hint: hint as JobId })));
      }
      for (const worker of workers) await claim(worker);
    });
    expect(new Set(claimed).size).toBe(jobs);
    expect(claimed).toHaveLength(jobs);
    expect(sent.map(verbOf).filter((verb) => verb === "claim_hinted").length).toBeGreaterThan(jobs);
    await expectInvariants(pool);
  } finally {
    await claimers.end();
  }
}, 60_000);

/** Four claimers at once, until none of them finds anything. */
async function race(kinds: readonly string[]) {
  const claimers = new pg.Pool({ connectionString: url, max: 4 });
  const store = new PostgresStore({ pool: claimers });
  const claimed: string[] = [];
  let early = 0;
  try {
    const requests: ClaimRequest[] = [];
    for (let n = 0; n < 4; n += 1)
      requests.push(claimRequest(await startWorker(store), kinds, { limit }));
    await Promise.all(
      requests.map(async (request) => {
        for (;;) {
          const { jobs } = await store.claim(request);
          if (jobs.length === 0) {
            // What the three others are just being told of has been claimed too.
            if (claimed.length < total - 3 * limit) early += 1;
            return;
          }
          for (const { id } of jobs) claimed.push(id);
        }
      }),
    );
  } finally {
    await claimers.end();
  }
  return { claimed, early };
}
