import { defineTask, type JobId, Merge, silentLogger } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { add, mergeFixture, taskThat } from "./testing/merge-fixture.ts";

const { pool, operator } = await mergeFixture();

describe("pending jobs that cannot be decoded", () => {
  it.each([
    ["payload", `update venturi_jobs set payload = '{"bad":1}'`],
    ["carry", `update venturi_queue set carry = '"text"'`],
  ])("for their %s neither block nor multiply, with a warning an enqueue", async (_, spoil) => {
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (...told: unknown[]) => warned.push(told) };
    const queue = new Queue(pool, { logger });
    const poisoned = await queue.enqueue(add(1));
    await pool.query(spoil);
    const ids: JobId[] = [];
    for (const n of [1, 2, 3, 4, 5]) ids.push(await queue.enqueue(add(n)));
    expect(new Set(ids).size).toBe(1);
    expect(ids).not.toContain(poisoned);
    expect(await operator.job(ids[0] as JobId)).toMatchObject({ payload: { n: 15 } });
    expect((await operator.jobs({ status: "pending" })).jobs).toHaveLength(2);
    expect(warned).toHaveLength(5);
    expect(warned[0]).toEqual([expect.any(String), { kind: "add", jobs: [poisoned] }]);
    expect(JSON.stringify(warned)).not.toContain("bad");
  });

  it("are told to the logger of a queue over a store, too", async () => {
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (...told: unknown[]) => warned.push(told) };
    const queue = new Queue(new PostgresStore({ pool }), { logger });
    const poisoned = await queue.enqueue(add(1));
    await pool.query(`update venturi_jobs set payload = '{"bad":1}'`);
    await queue.enqueue(add(2));
    expect(warned).toEqual([[expect.any(String), { kind: "add", jobs: [poisoned] }]]);
    expect((await queue.stats()).pendingByKind).toEqual({ add: 2 });
  });

  it("are read on until one can be decoded, however many there are", async () => {
    const queue = new Queue(pool);
    const Alone = taskThat(() => Merge.independent());
    await queue.enqueueMany(Array.from({ length: 40 }, (_, n) => Alone({ key: "a", n })));
    await pool.query("update venturi_jobs set payload = '0'");
    const id = await queue.enqueue(add(1));
    expect(await queue.enqueue(add(2))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 3 } });
  });
});

it("a schema that hangs over what is pending holds up no other merge for ever", async () => {
  let hangs = false;
  const Hanging = defineTask({
    kind: "hanging",
    payload: v.pipeAsync(
      v.number(),
      v.checkAsync(() => (hangs ? new Promise<boolean>(() => undefined) : true)),
    ),
    dedupKey: () => "k",
    merge: () => Merge.keep(),
  });
  const queue = new Queue(pool);
  const job = Hanging(1);
  await queue.enqueue(job);
  const wedged = queue.enqueue(job);
  // It has been validated when it gets to the candidates.
  queueMicrotask(() => {
    hangs = true;
  });
  const results = await Promise.allSettled([wedged, queue.enqueue(add(1)), queue.enqueue(add(2))]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(results[0]).toMatchObject({ reason: { code: "merge", isRetryable: false } });
});

it("a body of the first release is found however many jobs of the key have ended", async () => {
  const client = await pool.connect();
  try {
    await client.query(`insert into venturi_kinds (name) values ('add') on conflict do nothing`);
    await client.query(`insert into venturi_jobs (id, created_at, kind_id, priority, dedup_key, payload)
      select gen_random_uuid(), now(), k.id, 1, 'a', '{"key":"a","n":1}'
      from venturi_kinds k, generate_series(1, 20000) where k.name = 'add'`);
    const id = await operator.enqueue(add(1));
    const { rows } = await client.query(
      `explain (analyze, buffers, format json) select * from venturi_merge_candidates_v1('[{"kind":"add","dedup_key":"a","limit":2}]')`,
    );
    const { Plan: plan } = rows[0]["QUERY PLAN"][0];
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(200);
    expect(await operator.enqueue(add(2))).toBe(id);
  } finally {
    await client.query("truncate venturi_jobs, venturi_queue, venturi_journal");
    client.release();
  }
});
