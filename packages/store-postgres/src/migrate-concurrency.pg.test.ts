import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { type Child, startChild } from "./testing/child.ts";
import type { MigrateOrder } from "./testing/migrator.ts";
import { enqueue, job } from "./testing/store-fixture.ts";

const { url, pool } = await testDatabase({ migrated: false });
const schemas = ["public", "My-Schema"];
const prefixes = ["venturi", "jobs_v2"];
const rounds = 20;
const children: Child[] = [];

beforeAll(async () => {
  for (let i = 0; i < 10; i += 1)
    children.push(startChild(new URL("./testing/migrator.ts", import.meta.url)));
  expect(await Promise.all(children.map((child) => child.next()))).toEqual(
    children.map(() => "ready"),
  );
}, 60_000);

afterAll(async () => {
  expect(await Promise.all(children.map((child) => child.end()))).toEqual(children.map(() => 0));
});

it("ten processes at once on an empty database all succeed, in either of two schemas", async () => {
  for (let round = 0; round < rounds; round += 1) {
    for (const schema of schemas) await pool.query(`drop schema if exists "${schema}" cascade`);
    const schema = schemas[round % 2] as string;
    for (const [index, child] of children.entries()) {
      const order = index % 2 === 0 ? prefixes : [...prefixes].reverse();
      child.tell(JSON.stringify({ url, schema, prefixes: order } satisfies MigrateOrder));
    }
    const answers = await Promise.all(children.map((child) => child.next()));
    expect(answers).toEqual(children.map(() => "migrated"));
    for (const prefix of prefixes) {
      const { rows } = await pool.query(`select version from "${schema}"."${prefix}_migrations"`);
      expect(rows).toEqual([{ version: 1 }]);
    }
  }
}, 90_000);

it("what they leave works, and holds no lock", async () => {
  const schema = schemas[(rounds - 1) % 2] as string;
  for (const prefix of prefixes) {
    const store = new PostgresStore({ pool, schema, prefix });
    const enqueued = await enqueue(store, job("k", { dedupKey: "same" }));
    await expectInvariants(pool, { schema, prefix, enqueued });
  }
  const { rows } = await pool.query(`select * from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())`);
  expect(rows).toEqual([]);
});
