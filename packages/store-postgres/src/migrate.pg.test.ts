import { silentLogger } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { dumpSchema } from "@venturi-tooling/testing/schema";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Database } from "./database.ts";
import { type LockPatience, migrate } from "./migrate.ts";
import { initial } from "./migrations/0001-initial/index.ts";
import { migrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { createNames } from "./names.ts";
import { pgSource } from "./pg-source.ts";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { liveThrough } from "./testing/live-through.ts";
import { until } from "./testing/until.ts";

const clean = await testDatabase();
const database = await testDatabase({ migrated: false });
const { pool } = database;
const names = createNames({ prefix: "venturi", schema: "public" });

beforeEach(async () => {
  await pool.query("drop schema public cascade; create schema public");
});

function run(steps: readonly Migration[] = migrations, patience?: LockPatience): Promise<void> {
  const source = pgSource(pool, { preparedStatements: true, owned: false, logger: silentLogger });
  return migrate(new Database(source, "venturi", silentLogger), names, steps, patience);
}

const history = async () =>
  (await pool.query("select version, name from venturi_migrations order by version")).rows;

const advisoryLocks = async () =>
  (
    await pool.query(`select * from pg_locks where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())`)
  ).rows;

/** A step whose statements have another put in before the one at `index`. */
function withStatement(step: Migration, index: number, text: string): Migration {
  return {
    ...step,
    statements: (n) => {
      const texts = [...step.statements(n)];
      texts.splice(index, 0, text);
      return texts;
    },
  };
}

const further = (version: number, ...texts: string[]): Migration => ({
  version,
  name: `further-${version}`,
  statements: (n) => texts.map((text) => text.replaceAll("$queue", n.of("queue"))),
});

describe("an empty database", () => {
  it("has each version recorded once, also when migrated twice", async () => {
    await run();
    await run();
    expect(await history()).toEqual([{ version: 1, name: "initial" }]);
    expect(await dumpSchema(pool, "venturi")).toBe(await dumpSchema(clean.pool, "venturi"));
  });

  it("gets the schema that the option names, quoted", async () => {
    const options = { pool, schema: "My-Schema", prefix: "jobs_v2" };
    await new PostgresStore(options).migrate();
    const { rows } = await pool.query(`select count(*)::int as n from "My-Schema".jobs_v2_queue`);
    expect(rows).toEqual([{ n: 0 }]);
    await expectInvariants(pool, options);
    await pool.query(`drop schema "My-Schema" cascade`);
  });

  it("keeps two prefixes and two schemas apart", async () => {
    const stores = ["public", "Other"].flatMap((schema) =>
      ["a", "b"].map((prefix) => new PostgresStore({ pool, schema, prefix })),
    );
    for (const store of stores) await store.migrate();
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const job = { id, kind: "k", payload: "1", priority: "normal", dedupKey: "1" } as const;
    await stores[0]?.enqueue({ jobs: [job] });
    const found = await Promise.all(stores.map((store) => store.findJob({ id })));
    expect(found.map((result) => result.job !== null)).toEqual([true, false, false, false]);
    await pool.query(`drop schema "Other" cascade`);
  });
});

describe("an interrupted migration", () => {
  const places = [...initial.statements(names).keys(), initial.statements(names).length];

  it("killed before any of its statements leaves nothing, and can be run again", async () => {
    const before = await dumpSchema(pool, "venturi");
    for (const place of places) {
      const kill = "select pg_terminate_backend(pg_backend_pid())";
      const error = await failureOf(run([withStatement(initial, place, kill)]));
      expect(error).toMatchObject({ code: "migration", isRetryable: true, sqlState: "57P01" });
      expect(error.message).toContain('migration 1 (initial) for prefix "venturi"');
    }
    expect(await dumpSchema(pool, "venturi")).toBe(before);
    await run();
    expect(await dumpSchema(pool, "venturi")).toBe(await dumpSchema(clean.pool, "venturi"));
    expect(await advisoryLocks()).toEqual([]);
  });

  it("killed from outside in the middle of a step leaves no lock behind", async () => {
    const running = failureOf(run([withStatement(initial, 5, "select pg_sleep(60)")]));
    const asleep =
      "from pg_stat_activity where datname = current_database() and query = 'select pg_sleep(60)' and state = 'active'";
    await until(async () => (await pool.query(`select pid ${asleep}`)).rows.length === 1);
    expect(await advisoryLocks()).toHaveLength(1);
    await pool.query(`select pg_terminate_backend(pid, 5000) ${asleep}`);
    expect(await running).toMatchObject({ code: "migration", isRetryable: true });
    expect(await advisoryLocks()).toEqual([]);
    await run();
    expect(await history()).toHaveLength(1);
  });

  it("keeps the steps that were applied before", async () => {
    const broken = [initial, further(2, "alter table $queue add extra int", "select 1 / 0")];
    const error = await failureOf(run(broken));
    expect(error).toMatchObject({ code: "migration", isRetryable: false, sqlState: "22012" });
    expect(error.message).toContain("migration 2 (further-2)");
    expect(await history()).toEqual([{ version: 1, name: "initial" }]);
    await run([initial, further(2, "alter table $queue add extra int")]);
    expect((await history()).map(({ version }) => version)).toEqual([1, 2]);
  });

  it("given up by its caller does not hinder the next", async () => {
    const store = new PostgresStore({ pool });
    const reason = new Error("enough");
    await expect(store.migrate({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await store.migrate();
    expect(await history()).toHaveLength(1);
  });
});

describe("a database that another version of this code made", () => {
  it("if newer is left alone: no statement changes it", async () => {
    await run([...migrations, further(2, "alter table $queue add from_the_future int")]);
    const before = await dumpSchema(pool, "venturi");
    const reader = new pg.Pool({
      connectionString: database.url,
      options: "-c default_transaction_read_only=on",
    });
    await new PostgresStore({ pool: reader }).migrate();
    await reader.end();
    expect(await dumpSchema(pool, "venturi")).toBe(before);
    expect((await history()).map(({ version }) => version)).toEqual([1, 2]);
  });

  it("with the same version in another form is refused", async () => {
    await run();
    await pool.query("update venturi_migrations set checksum = 'something else'");
    const error = await failureOf(run());
    expect(error).toMatchObject({ code: "migration", isRetryable: false });
    expect(error.message).toContain("migration 1 (initial)");
    expect(await failureOf(run([...migrations, further(2)]))).toMatchObject({ code: "migration" });
    expect(await history()).toHaveLength(1);
  });

  it("has checksums that depend on neither prefix nor schema", async () => {
    await run();
    await new PostgresStore({ pool, schema: "My-Schema", prefix: "p" }).migrate();
    const { rows } = await pool.query(`select checksum from venturi_migrations
      union select checksum from "My-Schema".p_migrations`);
    expect(rows).toHaveLength(1);
    await pool.query(`drop schema "My-Schema" cascade`);
  });
});

describe("a lock that somebody holds", () => {
  const patience = { lockTimeoutMs: 40, attempts: 2 };

  it("fails the migration with an error that names it, and the next one succeeds", async () => {
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query("begin; select pg_advisory_xact_lock(hashtext('venturi:migrate'), 0)");
    const error = await failureOf(run(migrations, patience));
    expect(error).toMatchObject({ code: "migration", isRetryable: true, sqlState: "55P03" });
    expect(error.message).toContain("advisory lock hashtext('venturi:migrate'), 0");
    expect(error.message).toContain("2 times 40 ms");
    await holder.end();
    await run(migrations, patience);
    expect(await advisoryLocks()).toEqual([]);
  });

  it("on a table in use is waited for in short attempts, so that nobody queues up behind", async () => {
    await run();
    const steps = [...migrations, further(2, "alter table $queue add extra int")];
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    await reader.query("begin; select 1 from venturi_queue");
    expect(await failureOf(run(steps, patience))).toMatchObject({ sqlState: "55P03" });
    const waiting = run(steps, { lockTimeoutMs: 100, attempts: 100 });
    await new PostgresStore({ pool }).enqueue({
      jobs: [{ id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", kind: "k", payload: "1", priority: "low" }],
    });
    await reader.end();
    await waiting;
    expect((await history()).map(({ version }) => version)).toEqual([1, 2]);
  });
});

describe("a role without the right to create", () => {
  const role = `venturi_app_${process.pid}`;
  const app = new pg.Pool({ connectionString: database.directUrl, options: `-c role=${role}` });
  afterAll(async () => {
    await app.end();
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  });

  it("can do everything on a migrated database, and call migrate too", async () => {
    await pool.query(`create role ${role}`);
    await run();
    await pool.query(`grant usage on schema public to ${role};
      grant select, insert, update, delete on all tables in schema public to ${role};
      grant usage on all sequences in schema public to ${role}`);
    const store = new PostgresStore({ pool: app });
    await store.migrate();
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    await store.enqueue({ jobs: [{ id, kind: "k", payload: "1", priority: "low", delayMs: 1 }] });
    const { worker } = await store.startWorker({
      name: "w",
      kinds: ["k"],
      pollMaxMs: 1,
      workerTimeoutMs: 1,
      shortestLeaseMs: 1,
    });
    const kinds = [{ kind: "k", limit: 1, leaseMs: 1e6, backstop: null }];
    const turn = { counter: 0, ratio: null };
    await until(async () => {
      const { jobs } = await store.claim({ worker, limit: 1, kinds, turn });
      return jobs.length === 1;
    });
    await store.configure({ notify: true });
    expect(await store.findJob({ id })).toMatchObject({ job: { status: "claimed" } });
    await liveThrough(store, "everything");
    const client = await app.connect();
    try {
      await client.query("begin");
      const run = { worker, jobId: id, runCount: 1, note: null, attachment: null };
      await store.complete(client, run);
      await client.query("commit");
    } finally {
      client.release();
    }
    expect(await store.findJob({ id })).toMatchObject({ job: { status: "completed" } });
    await expectInvariants(pool);
  });

  it("is told what it lacks on an empty one", async () => {
    const error = await failureOf(new PostgresStore({ pool: app, schema: "absent" }).migrate());
    expect(error).toMatchObject({ code: "migration", sqlState: "42501", isRetryable: false });
    expect(error.message).toContain("permission denied");
  });
});
