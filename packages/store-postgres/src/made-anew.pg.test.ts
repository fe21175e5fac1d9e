import type { ClaimRequest, JobId } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { claimKind, claimRequest, enqueue, job, startWorker } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { pool } = await testDatabase();
const schema = "anew";

async function makeAnew(): Promise<PostgresStore> {
  await pool.query(`drop schema if exists ${schema} cascade`);
  const store = new PostgresStore({ pool, schema });
  await store.migrate();
  return store;
}

/** A store that has claimed jobs of "a" and "b", and goes on when the tables have been made anew. */
let living: PostgresStore;
let worker: number;
const claim = async (...kinds: readonly string[]) =>
  (await living.claim(claimRequest(worker, kinds))).jobs;

/** A job of each, those of "b" first, which so get the number that "a" had. */
async function enqueueAnew() {
  const [b] = await enqueue(living, job("b"));
  const [a] = await enqueue(living, job("a"));
  return { a, b };
}

beforeEach(async () => {
  living = await makeAnew();
  worker = await startWorker(living, { kinds: ["a", "b"] });
  await enqueue(living, job("a"), job("b"));
  expect(await claim("a", "b")).toHaveLength(2);
});

describe.each<[string, () => Promise<unknown>]>([
  ["after a drop and a migration", makeAnew],
  [
    "after a truncation that begins numbers anew",
    () =>
      pool.query(
        ["kinds", "jobs", "queue", "journal", "workers"]
          .map((table) => `truncate ${schema}.venturi_${table} restart identity`)
          .join("; "),
      ),
  ],
])("a store that lives on %s", (_, makeTables) => {
  it("claims no job of a kind that has the number of another now, and then those of its own", async () => {
    await makeTables();
    const { a: own, b: other } = await enqueueAnew();
    const found: string[] = [];
    await until(async () => {
      found.push(...(await claim("a")).map(({ id }) => id));
      return found.length > 0;
    });
    expect(found).toEqual([own]);
    expect((await claim("b")).map(({ id }) => id)).toEqual([other]);
  });

  it("tells jobs apart whose kinds have changed numbers, both of which it asks for", async () => {
    await makeTables();
    const { a, b } = await enqueueAnew();
    const found = new Map<string, string>();
    await until(async () => {
      for (const { id, kind } of await claim("a", "b")) found.set(kind, id);
      return found.size === 2;
    });
    expect([...found].sort()).toEqual([
      ["a", a],
      ["b", b],
    ]);
  });

  it("has the right numbers for a worker that starts then, from its first claim on", async () => {
    await makeTables();
    const { a: own } = await enqueueAnew();
    worker = await startWorker(living, { kinds: ["a", "c"] });
    expect((await claim("a", "c")).map(({ id }) => id)).toEqual([own]);
  });
});

/** How the claim goes that follows tells which statement it is. */
it.each<[string, Partial<ClaimRequest>, (other: JobId) => Partial<ClaimRequest>]>([
  ["all that waits", {}, () => ({})],
  ["some of what waits", { limit: 2 }, () => ({})],
  ["the job that was named", {}, (other) => ({ hint: other })],
])(
  "a claim of %s takes none of a kind that has the number of another now",
  async (_, before, asked) => {
    await enqueue(living, job("a"), job("b"));
    const { jobs } = await living.claim(claimRequest(worker, ["a", "b"], before));
    expect(jobs).toHaveLength(2);
    await makeAnew();
    const { b: other } = await enqueueAnew();
    const answer = await living.claim(claimRequest(worker, ["a"], asked(other as JobId)));
    expect(answer.jobs).toEqual([]);
  },
);

it("asks for the numbers of paused kinds now and then, not with each claim", async () => {
  const statements: string[] = [];
  const { query } = pool;
  pool.query = ((asked: { readonly text?: string } | string, ...rest: never[]) => {
    statements.push(typeof asked === "string" ? asked : (asked.text ?? ""));
    return (query as (...args: unknown[]) => unknown).call(pool, asked, ...rest);
  }) as unknown as typeof pool.query;
  await pool.query(`update ${schema}.venturi_kinds set paused_at = now() where name = 'b'`);
  const [id] = await enqueue(living, job("a"));
  for (let n = 0; n < 5; n += 1) await living.claim(claimRequest(worker, [claimKind("b")]));
  expect((await claim("a")).map((found) => found.id)).toEqual([id]);
  pool.query = query;
  expect(statements.filter((text) => text.startsWith("select id, name from"))).toHaveLength(1);
});
