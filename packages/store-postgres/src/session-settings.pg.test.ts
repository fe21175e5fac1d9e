import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { liveThrough } from "./testing/live-through.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { claimNew, enqueue, job, startWorker } from "./testing/store-fixture.ts";

const { url, pool } = await testDatabase();
expectNoWarnings();

let expected: unknown;
beforeAll(async () => {
  await pool.query(shadows);
  expected = await liveThrough(new PostgresStore({ pool }), "reference");
});
afterEach(() => expectInvariants(pool));

const pools: pg.Pool[] = [];
afterAll(() => Promise.all(pools.map((some) => some.end())));
function makePool(settings: Readonly<Record<string, string>>): pg.Pool {
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  const made = new pg.Pool({ connectionString: url, max: 2, options: options.join(" ") });
  made.on("error", () => undefined);
  pools.push(made);
  return made;
}
const kysely = (some: pg.Pool) =>
  new Kysely<unknown>({ dialect: new PostgresDialect({ pool: some }) });

/** What an application may have that is named like PostgreSQL's own, and like venturi's. */
const shadows = `create schema shadows;
  create function shadows.unnest(uuid[]) returns setof uuid language sql as 'select null::uuid';
  create function shadows.count(bigint) returns bigint language sql as 'select 0::bigint';
  create function shadows.round(float8) returns float8 language sql as 'select 0::float8';
  create function shadows.make_interval(secs float8) returns interval language sql as 'select interval ''1 year''';
  create function shadows.to_timestamp(float8) returns timestamptz language sql as 'select ''epoch''::timestamptz';
  create function shadows.to_regclass(text) returns text language sql as 'select null::text';
  create function shadows.pg_notify(text, text) returns int language sql as 'select 1 / 0';
  create function shadows.substr(text, int, int) returns text language sql as 'select ''x''';
  create function shadows.statement_timestamp() returns timestamptz language sql as 'select ''epoch''::timestamptz';
  create function shadows.current_setting(text) returns text language sql as 'select ''read committed''';
  create function shadows.set_config(text, text, boolean) returns text language sql as 'select 1 / 0 || ''''';
  create function shadows.never(uuid, uuid) returns boolean language sql as 'select false';
  create operator shadows.= (leftarg = uuid, rightarg = uuid, function = shadows.never);
  create table shadows.venturi_jobs (id integer);
  create table shadows.venturi_queue (id integer);
  create table shadows.pg_namespace (nspname text);
  create domain shadows.text as integer;
  create domain shadows.jsonb as integer;`;

const odd = [
  ["a search path with other schemas before the system's", { search_path: "shadows,pg_catalog" }],
  ["arrays in which NULL is a text", { array_nulls: "off" }],
  ["numbers of few digits", { extra_float_digits: "-15" }],
] as const;

describe("every verb does the same where sessions are set to", () => {
  it.each(odd)("%s", async (_, settings) => {
    const { logger, records } = recordingLogger();
    const store = new PostgresStore({ pool: makePool(settings), logger });
    expect(await liveThrough(store, JSON.stringify(settings))).toEqual(expected);
    expect(records).toEqual([
      {
        level: "info",
        message: expect.stringContaining("settings of their own"),
        fields: expect.objectContaining(settings),
      },
    ]);
  });

  it.each(odd)("%s (over Kysely)", async (_, settings) => {
    const store = new PostgresStore({ db: kysely(makePool(settings)) });
    expect(await liveThrough(store, `kysely ${JSON.stringify(settings)}`)).toEqual(expected);
  });
});

it("no setting of a session is changed beyond the statement", async () => {
  const settings = { search_path: "shadows, pg_catalog", array_nulls: "off" };
  const lent = makePool({ search_path: "shadows,pg_catalog", array_nulls: "off" });
  await enqueue(new PostgresStore({ pool: lent }), job("unchanged"));
  for (const [name, value] of Object.entries(settings)) {
    const { rows } = await lent.query(`show ${name}`);
    expect(rows[0][name].replace(/, */g, ", ")).toBe(value);
  }
});

it("migrates whatever stands before the system's schema", async () => {
  const store = new PostgresStore({
    pool: makePool({ search_path: "shadows,pg_catalog" }),
    prefix: "shadowed",
  });
  await store.migrate();
  await store.migrate();
  await enqueue(store, job("migrated"));
  await expectInvariants(pool, { prefix: "shadowed" });
});

it("what is handed back is found by the end of its lease, however few digits numbers have", async () => {
  const store = new PostgresStore({ pool: makePool({ extra_float_digits: "-15" }) });
  const worker = await startWorker(store);
  const [claimed] = await claimNew(store, worker, "digits", 1);
  const { id, runCount, leaseExpiresAt } = claimed;
  const claims = [{ jobId: id, runCount, leaseExpiresAt }];
  expect(await store.handBack({ worker, claims })).toEqual({ verdicts: ["applied"] });
});
