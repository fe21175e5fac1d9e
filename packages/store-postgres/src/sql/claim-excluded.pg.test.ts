import { testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PgQuery } from "../pg-like.ts";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { Explainer } from "../testing/explainer.ts";
import { recordingPool, verbOf } from "../testing/recording-pool.ts";
import { claimRequest, enqueue, job, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const others = 8_000;

beforeEach(() => removeJobs(pool));

/** Jobs that are not to be claimed, as `runOnce` leaves them that fail without a delay, and two behind them. */
async function behindExcluded(count: number) {
  const exclude = await enqueue(store, ...Array.from({ length: count }, () => job("a")));
  const wanted = await enqueue(store, job("a"), job("a"));
  return { exclude, wanted };
}

it("a claim brings what stands behind thousands that it is not to bring, in order", async () => {
  const { exclude, wanted } = await behindExcluded(others);
  const worker = await startWorker(store);
  const claim = (limit: number) => store.claim(claimRequest(worker, ["a"], { limit, exclude }));
  expect((await claim(1)).jobs.map(({ id }) => id)).toEqual(wanted.slice(0, 1));
  expect((await claim(10)).jobs.map(({ id }) => id)).toEqual(wanted.slice(1));
  expect(await claim(10)).toMatchObject({ jobs: [], blocked: false });
});

describe.each(["generic", "custom"] as const)("a %s plan", (mode) => {
  let explainer: Explainer;
  beforeEach(async () => {
    explainer = await Explainer.open(pool, mode);
  });
  afterEach(() => explainer.close());

  /** A claim as a worker sends it that has just claimed something else. */
  async function claimAfter(first: string): Promise<PgQuery> {
    await enqueue(store, ...Array.from({ length: 10 }, () => job("many")));
    const { exclude } = await behindExcluded(others);
    const worker = await startWorker(store);
    await store.claim(claimRequest(worker, [first], { limit: 10 }));
    const request = claimRequest(worker, ["a"], { exclude });
    const [query] = await recorder.queriesWithheld(() => store.claim(request));
    return query as PgQuery;
  }

  it.each([
    ["claim", "many"],
    ["claim_all", "none"],
  ])("of %s looks the excluded up in a hash, not one by one", async (verb, first) => {
    const query = await claimAfter(first);
    expect(verbOf(query)).toBe(verb);
    const { nodes } = await explainer.run(query);
    const filters = nodes.map(({ Filter = "" }) => Filter).join("\n");
    expect(filters).toMatch(/hashed SubPlan/);
    expect(filters).not.toContain("job_id <> ALL");
  });
});
