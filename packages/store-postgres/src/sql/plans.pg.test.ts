import { testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PgQuery } from "../pg-like.ts";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, addEnded } from "../testing/backlog.ts";
import { Explainer } from "../testing/explainer.ts";
import {
  checkPlan,
  hotStatements,
  type Queries,
  twelve,
  verbs,
} from "../testing/hot-statements.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import { claimRequest, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });

/** Before anything was there; kept while the tables fill. */
let early: Explainer;
let queries: Queries;

beforeAll(async () => {
  // Neither plans nor statistics change behind our back.
  for (const table of ["queue", "jobs", "journal", "dead"])
    await pool.query(`alter table venturi_${table} set (autovacuum_enabled = false)`);
  early = await Explainer.open(pool);
  queries = await hotStatements(pool);
  for (const name of verbs) await early.run(queries[name]);

  await addBacklog(pool, { kind: "foreign", count: 100_000, tier: 0, bodies: false });
  await addBacklog(pool, {
    kind: "foreign",
    count: 100_000,
    tier: 0,
    dueInMs: 3.6e6,
    bodies: false,
  });
  await addBacklog(pool, { kind: "a", count: 100_000 });
  await addBacklog(pool, { kind: "later", count: 100_000, dueInMs: 3.6e6, bodies: false });
  await addBacklog(pool, { kind: "due", count: 5_000, dueInMs: -3.6e6 });
  for (const [index, kind] of twelve.entries())
    await addBacklog(pool, { kind, count: 1_000, tier: (index % 3) as 0 | 1 | 2 });
  await addEnded(pool, { kind: "a", count: 50_000, outcome: "completed" });
  await addEnded(pool, { kind: "a", count: 10_000, outcome: "dead" });
}, 120_000);

afterAll(() => early.close());

describe("a plan made for the empty database, kept while it filled", () => {
  beforeAll(async () => {
    queries = await hotStatements(pool);
  });

  it.each(verbs)("%s", async (name) => checkPlan(name, await early.run(queries[name])));
});

describe.each(["generic", "custom"] as const)("a %s plan made without statistics", (mode) => {
  let explainer: Explainer;
  beforeAll(async () => {
    explainer = await Explainer.open(pool, mode);
    queries = await hotStatements(pool);
  });
  afterAll(() => explainer.close());

  it.each(verbs)("%s", async (name) => checkPlan(name, await explainer.run(queries[name])));

  it.each([
    "enable_hashjoin, enable_mergejoin, enable_material",
    "enable_nestloop, enable_material",
    "enable_hashjoin, enable_nestloop, enable_sort",
  ])("without %s a claim still takes exactly its limit", async (settings) => {
    const odd = await Explainer.open(pool, mode);
    try {
      for (const setting of settings.split(", ")) await odd.set(`${setting} = off`);
      const all = await odd.outcome(queries["claim of all of one kind"]);
      expect([all.returned, all.changed]).toEqual([100, 100]);
      const worker = await startWorker(store, { kinds: ["a", ...twelve] });
      for (const limit of [1, 5]) {
        for (const kinds of [["a"], twelve]) {
          const request = claimRequest(worker, kinds, { limit, turn: { counter: 0, ratio: 2 } });
          const [claim] = await recorder.queriesWithheld(() => store.claim(request));
          const { returned, changed } = await odd.outcome(claim as PgQuery);
          expect([returned, changed]).toEqual([limit, limit]);
        }
      }
    } finally {
      odd.close();
    }
  });
});

describe.each(["generic", "custom"] as const)("a %s plan made after ANALYZE", (mode) => {
  let explainer: Explainer;
  beforeAll(async () => {
    await pool.query("analyze");
    explainer = await Explainer.open(pool, mode);
    queries = await hotStatements(pool);
  });
  afterAll(() => explainer.close());

  it.each(verbs)("%s", async (name) => checkPlan(name, await explainer.run(queries[name])));
});

describe.each(["generic", "custom"] as const)(
  "a %s plan made for twenty million live jobs",
  (mode) => {
    let explainer: Explainer;
    beforeAll(async () => {
      // As an ANALYZE of so large a table would leave it, without the hour that filling it would take.
      await pool.query(
        "update pg_class set reltuples = 2e7, relpages = pg_relation_size(oid) / 8192 where oid = 'venturi_queue'::regclass",
      );
      explainer = await Explainer.open(pool, mode);
      queries = await hotStatements(pool);
    });
    afterAll(() => explainer.close());

    it.each(verbs)("%s", async (name) => checkPlan(name, await explainer.run(queries[name])));
  },
);
