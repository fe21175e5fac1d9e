import { createJobIds, defineTask } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Add } from "./testing/adding.ts";
import { add, mergeFixture, taskThat } from "./testing/merge-fixture.ts";

const { pool, operator, claim, outcomes, payloads } = await mergeFixture();

describe.each([
  ["a pool", () => new Queue(pool)],
  ["a store", () => new Queue(new PostgresStore({ pool }))],
] as const)("a merge function, from a queue over %s", (_, make) => {
  const queue = make();

  it("in enqueueMany: duplicates merge with the earlier ones, atomically and in order", async () => {
    const pending = await queue.enqueue(add(100));
    const ids = await queue.enqueueMany([add(1), add(1, "b"), add(2), add(2, "b"), add(3)]);
    expect(ids).toEqual([pending, ids[1], pending, ids[1], pending]);
    expect((await payloads()).sort((a, b) => a - b)).toEqual([3, 106]);
    expect(await outcomes(pending)).toEqual(["merged", "merged", "merged"]);
  });

  it("in enqueueMany: a bad one rejects all, and nothing is written", async () => {
    const Bad = taskThat(() => {
      throw new Error("no");
    });
    await queue.enqueue(add(1));
    const many = queue.enqueueMany([add(2), add(1, "b"), Bad({ key: "a", n: 1 })]);
    await expect(many).rejects.toMatchObject({ code: "merge", isRetryable: false });
    expect(await payloads()).toEqual([1]);
  });

  it("a repeat and a new job given twice, in one call: the new one counts once, in whatever order", async () => {
    for (const order of ["KUU", "UUK", "KKU", "KUVUV"]) {
      const key = `twice ${order}`;
      await queue.enqueue(Add({ key, n: 1 }));
      const newId = createJobIds({ now: Date.now, random: Math.random });
      const ids = new Map([..."KUV"].map((name) => [name, newId()]));
      const item = (name: string) => ({ job: Add({ key, n: 1 }), id: ids.get(name) });
      const { job, ...options } = item("K");
      await queue.enqueue(job, options);
      const items = [...order].map(item);
      const stored = await queue.enqueueMany(items);
      expect(new Set(stored).size).toBe(1);
      expect((await operator.job(stored[0] as string))?.payload).toEqual({
        key,
        n: 2 + new Set(order).size - 1,
      });
    }
  });

  it("repeats with the same id return what the first call did", async () => {
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const merged = "01ARZ3NDEKTSV4RRFFQ69G5FAW";
    await queue.enqueue(add(1), { id });
    await queue.enqueue(add(2), { id: merged });
    // Alone, and in one statement with additions of the same key.
    expect(await queue.enqueue(add(2), { id: merged })).toBe(id);
    const many = [{ job: add(2), id: merged }, add(10), { job: add(1), id }, add(20)];
    expect(await queue.enqueueMany(many)).toEqual([id, id, id, id]);
    expect(await payloads()).toEqual([33]);
    await claim("add", "completed");
    const [again, fresh] = await queue.enqueueMany([{ job: add(1), id }, add(5)]);
    expect(again).toBe(id);
    expect(fresh).not.toBe(id);
  });

  it("shares a call with constant merges of the same kind and key", async () => {
    const Constant = defineTask({
      kind: "add",
      payload: v.object({ key: v.string(), n: v.number() }),
      dedupKey: ({ key }) => key,
      merge: "replace",
    });
    const id = await queue.enqueue(add(1));
    const ids = await queue.enqueueMany([add(1), Constant({ key: "a", n: 50 }), add(7)]);
    expect(ids).toEqual([id, id, id]);
    expect(await payloads()).toEqual([57]);
  });
});
