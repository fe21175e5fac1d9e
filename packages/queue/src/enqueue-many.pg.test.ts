import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count, Kept, Replaced } from "./testing/tasks.ts";

const database = await testDatabase();
const queue = new Queue(database.pool);
const operator = new Queue(new PostgresStore({ pool: database.pool }));

afterEach(() => expectInvariants(database.pool));

async function jobCount(): Promise<number> {
  const { rows } = await database.pool.query("select count(*)::int as count from venturi_jobs");
  return rows[0].count;
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

describe("many jobs in one call", () => {
  it("may be 20,000, and their ids come in the order given", async () => {
    const ids = await queue.enqueueMany(numbers(20_000).map((n) => Count({ n })));
    expect(new Set(ids).size).toBe(20_000);
    const { rows } = await database.pool.query(
      `select (payload ->> 'n')::int as n from venturi_jobs where kind_id =
         (select id from venturi_kinds where name = 'count') order by id`,
    );
    expect(rows.map(({ n }) => n)).toEqual(numbers(20_000));
    for (const index of [0, 10_000, 19_999]) {
      expect(await operator.job(ids[index] as string)).toMatchObject({ payload: { n: index } });
    }
  });

  it("may be 20,000 with 20,000 different keys", async () => {
    const jobs = numbers(20_000).map((n) => Kept({ key: `k${n}`, n }));
    const ids = await queue.enqueueMany(jobs);
    expect(new Set(ids).size).toBe(20_000);
    expect(await queue.enqueueMany(jobs)).toEqual(ids);
  });

  it("may have options each", async () => {
    const runAt = new Date(Date.now() + 60_000);
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const ids = await queue.enqueueMany([
      { job: Count({ n: 1 }), priority: "high", headers: { a: "1" } },
      { job: Count({ n: 2 }), runAt, id },
      Count({ n: 3 }),
    ]);
    expect(ids[1]).toBe(id);
    const jobs = await Promise.all(ids.map((each) => operator.job(each)));
    expect(jobs).toMatchObject([
      { priority: "high", headers: { a: "1" } },
      { visibleAt: runAt },
      { priority: "normal" },
    ]);
  });

  it("are all stored or none", async () => {
    const id = await queue.enqueue(Kept({ key: "other", n: 1 }));
    const before = await jobCount();
    const conflicting = queue.enqueueMany([Count({ n: 1 }), { job: Count({ n: 2 }), id }]);
    await expect(conflicting).rejects.toMatchObject({ code: "id-conflict", id });
    expect(await jobCount()).toBe(before);
  });

  it("may be none: no statement is sent", async () => {
    const nowhere = new Queue({ query: () => Promise.reject(new Error("was asked")) });
    expect(await nowhere.enqueueMany([])).toEqual([]);
  });

  it("with keys in opposite orders do not deadlock", async () => {
    const forward = numbers(2_000).map((n) => Replaced({ key: `both${n}`, n }));
    const backward = [...forward].reverse();
    const queues = numbers(4).map(() => new Queue(database.pool));
    const calls = queues.flatMap((each, index) =>
      numbers(3).map(() => each.enqueueMany(index % 2 === 0 ? forward : backward)),
    );
    const results = await Promise.all(calls);
    expect(new Set(results.flat()).size).toBe(2_000);
    const { rows } = await database.pool.query(
      "select deadlocks::int from pg_stat_database where datname = current_database()",
    );
    expect(rows).toEqual([{ deadlocks: 0 }]);
  });
});
