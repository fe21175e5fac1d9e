import { silentLogger } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { expect, it } from "vitest";
import { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { migrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { createNames, type Names } from "./names.ts";
import { pgSource } from "./pg-source.ts";
import { PostgresStore } from "./postgres-store.ts";
import { bareEnqueue, bareId, journalOf, liveJobs } from "./testing/bare-sql.ts";
import { claimRequest, settlement, startWorker } from "./testing/store-fixture.ts";

const database = await testDatabase({ migrated: false });
const { pool } = database;

function migrateTo(steps: readonly Migration[]): Promise<void> {
  const source = pgSource(pool, { preparedStatements: true, owned: false, logger: silentLogger });
  const names = createNames({ prefix: "venturi", schema: "public" });
  return migrate(new Database(source, "venturi", silentLogger), names, steps);
}

/** What a release to come may do: columns, an index, a table, and the next version of the function beside this one. */
const later: Migration = {
  version: 1_000,
  name: "later",
  statements: (n: Names) => [
    `alter table ${n.of("queue")} add column color text not null default 'none', add column due_before timestamptz`,
    `alter table ${n.of("jobs")} add column tenant text`,
    `create index on ${n.of("jobs")} (tenant) where tenant is not null`,
    `create table ${n.of("tenants")} (name text primary key)`,
    `create function ${n.of("enqueue_v2")}(jobs jsonb, tenant text)
       returns table (ord integer, id text, outcome text, tenant text)
       language sql volatile security definer set search_path = pg_catalog, pg_temp as $fn$
         select e.ord, e.id, e.outcome, tenant from ${n.of("enqueue_v1")}(jobs) e $fn$`,
  ],
};

/** The functions that carry a version in their name, as they stand in the database. */
async function versioned(): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ name: string; text: string }>(
    `select p.oid::regprocedure::text as name, pg_get_functiondef(p.oid) as text
    from pg_proc p where p.proname ~ '^venturi_.*_v[0-9]+$' and p.pronamespace = 'public'::regnamespace`,
  );
  return new Map(rows.map(({ name, text }) => [name, text]));
}

it("a function that has been released is never changed or dropped by a later migration", async () => {
  let released = new Map<string, string>();
  for (const [place] of migrations.entries()) {
    await migrateTo(migrations.slice(0, place + 1));
    const present = await versioned();
    for (const [name, text] of released) expect(present.get(name)).toBe(text);
    released = new Map(present);
  }
  expect([...released.keys()]).toEqual(
    expect.arrayContaining([
      "venturi_enqueue_v1(jsonb)",
      "venturi_merge_candidates_v1(jsonb)",
      "venturi_complete_v1(integer,uuid,integer,text,jsonb)",
    ]),
  );
});

it("a producer of this release goes on after a later migration, on the connection that it had", async () => {
  await migrateTo(migrations);
  const producer = new pg.Client({ connectionString: database.url });
  await producer.connect();
  const enqueue = async (job: object) => (await bareEnqueue(producer, [job]))[0];
  // Its plans are made by now, and kept with the session.
  for (let n = 0; n < 8; n += 1) await enqueue({ kind: "before", dedup_key: `${n}`, payload: n });

  await migrateTo([...migrations, later]);

  const id = bareId();
  const job = {
    ...id,
    kind: "after",
    dedup_key: "k",
    merge: "keep",
    payload: 1,
    headers: { a: "b" },
  };
  const first = await enqueue(job);
  expect(first).toMatchObject({ outcome: "enqueued" });
  expect(await enqueue(job)).toEqual({ ...first, outcome: "repeated" });
  expect(await enqueue({ ...job, ...bareId() })).toEqual({ ...first, outcome: "kept" });
  expect(await enqueue({ ...job, ...bareId(), merge: "replace", payload: 2 })).toEqual({
    ...first,
    outcome: "replaced",
  });
  expect(
    await enqueue({ kind: "after", delay_ms: 60_000, priority: "high", lease_ms: 5_000 }),
  ).toMatchObject({ outcome: "enqueued" });
  const { rows } = await producer.query(
    `select candidate::jsonb as c from venturi_merge_candidates_v1('[{"kind":"after","dedup_key":"k","limit":1}]')`,
  );
  const { id: candidate, version, run_count } = rows[0].c;
  const decision = { action: "with", candidate, version, run_count, payload: 3 };
  expect(await enqueue({ kind: "after", dedup_key: "k", decision })).toEqual({
    ...first,
    outcome: "merged",
  });
  expect(await liveJobs(pool, "k.name = 'after' and q.dedup_key = 'k'")).toMatchObject([
    { id: first?.id, payload: 3, headers: null },
  ]);
  expect(await journalOf(pool, first?.id as string)).toHaveLength(3);
  await producer.end();
  await expectInvariants(pool);
});

it("a worker of this release claims and settles after a later migration", async () => {
  const store = new PostgresStore({ pool });
  const worker = await startWorker(store, { kinds: ["before", "after"] });
  const { jobs } = await store.claim(claimRequest(worker, ["before", "after"], { limit: 100 }));
  expect(jobs).toHaveLength(9);
  const settlements = jobs.map((claimed) => settlement(claimed, "completed"));
  const { verdicts } = await store.settle({ worker, settlements });
  expect(new Set(verdicts)).toEqual(new Set(["applied"]));
  await expectInvariants(pool);
});
