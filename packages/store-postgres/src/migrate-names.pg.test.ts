import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { liveThrough } from "./testing/live-through.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase({ migrated: false });
const common = `p${"2345678_".repeat(5).slice(0, 37)}`;
const prefixes = [`${common}a`, `${common}b`];
const stores = prefixes.map((prefix) => new PostgresStore({ pool, prefix }));

afterAll(() => Promise.all(stores.map((store) => store.close())));

it("a prefix of 39 characters works with every name derived from it", async () => {
  for (const [index, store] of stores.entries()) {
    const prefix = prefixes[index] as string;
    expect(prefix).toHaveLength(39);
    await store.migrate();
    let woken = 0;
    const subscription = store.listen({ onWake: () => (woken += 1) });
    await subscription.listening;
    const [id] = await enqueue(store, job("k", { dedupKey: "1" }));
    await until(() => woken > 1);
    const worker = await startWorker(store, { kinds: ["k"] });
    const { jobs } = await store.claim(claimRequest(worker, ["k"]));
    expect(jobs.map((claimed) => claimed.id)).toEqual([id]);
    const settlements = jobs.map((claimed) => settlement(claimed));
    expect(await store.settle({ worker, settlements })).toEqual({ verdicts: ["applied"] });
    await expectInvariants(pool, { prefix, enqueued: [String(id)] });
  }
});

it("two prefixes that differ in their last character alone share no name", async () => {
  const { rows } = await pool.query<{ what: string; name: string }>(`
    select 'relation' as what, relname as name from pg_class where relnamespace = 'public'::regnamespace
    union all select 'function', proname from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'constraint of ' || conrelid::regclass, conname from pg_constraint
      where connamespace = 'public'::regnamespace`);
  const shown = rows.map(({ what, name }) => `${what} ${name}`);
  expect(new Set(shown).size).toBe(shown.length);
  const byPrefix = prefixes.map((prefix) =>
    rows.filter(({ name }) => name.startsWith(`${prefix}_`)).map(({ name }) => name.slice(39)),
  );
  // Names that PostgreSQL gives itself to "not null" may be cut; none of ours is.
  const ours = byPrefix.map((names) => names.filter((name) => !name.endsWith("_not_null")).sort());
  expect(ours[0]?.length).toBeGreaterThan(30);
  expect(ours[1]).toEqual(ours[0]);
});

it("no derived name is cut off at 63 bytes", async () => {
  const { rows } = await pool.query<{ name: string }>(`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace
    union all select proname from pg_proc where pronamespace = 'public'::regnamespace
    union all select conname from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'`);
  const foreign = rows.filter(({ name }) => !prefixes.some((p) => name.startsWith(`${p}_`)));
  expect(foreign).toEqual([]);
  expect(rows.filter(({ name }) => Buffer.byteLength(name) > 62)).toEqual([]);
});

describe("a schema may have any name", () => {
  it.each(["a.b", "$fn$", "a$fn$ $fn_$b", "back\\slash"])("%j", async (schema) => {
    const store = new PostgresStore({ pool, schema });
    await store.migrate();
    expect(await liveThrough(store, "any")).toEqual(
      await liveThrough(new PostgresStore({ pool, prefix: "plain" }), schema),
    );
    await expectInvariants(pool, { schema });
  });

  it("also where backslashes are read as escapes", async () => {
    const options = "-c standard_conforming_strings=off -c escape_string_warning=off";
    const escaping = new pg.Pool({ connectionString: url, options });
    const schema = "back\\nslash";
    await new PostgresStore({ pool, schema }).migrate();
    const [id] = await enqueue(new PostgresStore({ pool: escaping, schema }), job("k"));
    const worker = await startWorker(new PostgresStore({ pool: escaping, schema }));
    const { jobs } = await new PostgresStore({ pool: escaping, schema }).claim(
      claimRequest(worker, ["k"]),
    );
    expect(jobs.map((claimed) => claimed.id)).toEqual([id]);
    await escaping.end();
  });
});

it.each(["", "Venturi", "jobs-v2", "jobs;drop", "1jobs", "a".repeat(40)])(
  "the prefix %j is refused before any statement",
  (prefix) => {
    expect(() => new PostgresStore({ pool, prefix })).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "prefix" }),
    );
  },
);
