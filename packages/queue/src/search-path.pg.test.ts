import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { add } from "./testing/merge-fixture.ts";
import { Count } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));
/** Sessions that find something else before PostgreSQL's own, and before venturi's. */
const pool = new pg.Pool({
  connectionString: database.url,
  options: "-c search_path=shadows,pg_catalog",
});
await database.pool.query(`create schema shadows;
  create aggregate shadows.count(*) (sfunc = int8inc, stype = bigint, initcond = '7');
  create function shadows.jsonb_build_array(integer, text, text) returns jsonb language sql as 'select ''[]''::pg_catalog.jsonb';
  create function shadows.always(text, text) returns boolean language sql as 'select true';
  create operator shadows.<> (leftarg = text, rightarg = text, function = shadows.always);
  create domain shadows.jsonb as integer;
  create domain shadows.text as integer;
  create function shadows.venturi_enqueue_v1(pg_catalog.jsonb) returns integer language sql as 'select 1 / 0'`);

afterAll(async () => {
  await pool.end();
  await expectInvariants(database.pool);
});

it("a job is stored and told of rightly, whatever the search path of the session finds first", async () => {
  const queue = new Queue(pool);
  const id = await queue.enqueue(Count({ n: 7 }));
  expect(await operator.job(id)).toMatchObject({ id, payload: { n: 7 } });
  expect(await queue.enqueue(Count({ n: 7 }), { id })).toBe(id);
});

it("a merge function decides about what is pending, whatever the search path of the session finds first", async () => {
  const queue = new Queue(pool);
  const id = await queue.enqueue(add(1));
  expect(await queue.enqueue(add(2))).toBe(id);
  expect(await operator.job(id)).toMatchObject({ payload: { n: 3 } });
});
