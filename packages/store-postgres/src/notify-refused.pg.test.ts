import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { job } from "./testing/store-fixture.ts";

const { directUrl, pool } = await testDatabase({ migrated: false });
const owner = `venturi_unheard_${process.pid}`;
await pool.query(`create role ${owner}; grant usage, create on schema public to ${owner}`);
const owners = new pg.Pool({ connectionString: directUrl, options: `-c role=${owner}` });

afterAll(async () => {
  await owners.end();
  await pool.query(`drop owned by ${owner}; drop role ${owner}`);
});

it("a notification that the server refuses fails its enqueue as a whole; without notifications producers go on", async () => {
  const store = new PostgresStore({ pool: owners });
  await store.migrate();
  // As a full queue of notifications would, but for the owner of this database's queue alone.
  await pool.query("revoke execute on function pg_catalog.pg_notify(text, text) from public");
  await expect(store.enqueue({ jobs: [job("k")] })).rejects.toMatchObject({
    code: "database",
    message: expect.stringContaining("pg_notify"),
  });
  expect((await pool.query("select from venturi_jobs")).rowCount).toBe(0);
  await store.configure({ notify: false });
  await store.enqueue({ jobs: [job("k")] });
  expect((await pool.query("select from venturi_queue")).rowCount).toBe(1);
});
