import { testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, describe, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, addEnded, removeJobs } from "../testing/backlog.ts";
import { Explainer } from "../testing/explainer.ts";
import {
  checkPlan,
  hotStatements,
  type Queries,
  twelve,
  verbs,
} from "../testing/hot-statements.ts";
import { claimNew, settlement, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });

/** A queue is empty most of the time, and that is what a vacuum tells the planner of it. */
const states = {
  "has just been migrated and vacuumed": () => pool.query("vacuum"),
  "has seen a handful of jobs, then a vacuum with statistics": async () => {
    const worker = await startWorker(store);
    const jobs = await claimNew(store, worker, "a", 30);
    await store.settle({ worker, settlements: jobs.map((each) => settlement(each)) });
    await pool.query("vacuum analyze");
  },
  "was full when it was analyzed, and empty when it was vacuumed": async () => {
    await fill();
    await pool.query("analyze");
    await removeJobs(pool);
    await pool.query("vacuum");
  },
  "held two thousand jobs of another kind when it was analyzed": async () => {
    await addBacklog(pool, { kind: "foreign", count: 2_000 });
    await pool.query("analyze");
  },
  "was emptied, and vacuumed with statistics": async () => {
    await fill();
    await removeJobs(pool);
    await pool.query("vacuum analyze");
  },
};

/** Twice what the statements may look at and more, but little enough to be there quickly. */
async function fill(): Promise<void> {
  await addBacklog(pool, { kind: "a", count: 20_000 });
  await addBacklog(pool, { kind: "due", count: 5_000, dueInMs: -3.6e6 });
  await addBacklog(pool, { kind: "later", count: 10_000, dueInMs: 3.6e6, bodies: false });
  for (const [index, kind] of twelve.entries())
    await addBacklog(pool, { kind, count: 500, tier: (index % 3) as 0 | 1 | 2 });
  await addEnded(pool, { kind: "a", count: 20_000, outcome: "completed" });
  await addEnded(pool, { kind: "a", count: 6_000, outcome: "dead" });
}

beforeAll(async () => {
  for (const table of ["queue", "jobs", "journal", "dead"])
    await pool.query(`alter table venturi_${table} set (autovacuum_enabled = false)`);
});

describe.each(Object.entries(states))("after a burst of jobs, when the queue %s", (_, reach) => {
  let kept: Explainer;
  let custom: Explainer;
  let queries: Queries;

  beforeAll(async () => {
    await removeJobs(pool);
    // What the state before has left is no part of this one, and how much of it walks pass is chance.
    await pool.query("vacuum");
    await reach();
    queries = await hotStatements(pool);
    kept = await Explainer.open(pool);
    for (const name of verbs) await kept.run(queries[name]);
    await fill();
    custom = await Explainer.open(pool, "custom");
    queries = await hotStatements(pool);
  }, 60_000);
  afterAll(() => {
    kept.close();
    custom.close();
  });

  it.each(verbs)("%s, as planned before", async (name) =>
    checkPlan(name, await kept.run(queries[name])),
  );

  it.each(verbs)("%s, planned for each call", async (name) =>
    checkPlan(name, await custom.run(queries[name])),
  );
});
