import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { type Decision, Merge, type Pending } from "./merge.ts";
import { planMerges } from "./merge-plan.ts";
import { defineTask } from "./task.ts";
import {
  type Carry,
  candidate,
  job,
  now,
  type Payload,
  plan,
  taskThat,
} from "./testing/merge-jobs.ts";

describe("what a merge function sees", () => {
  it("is the incoming input, and the first pending job with its state", async () => {
    const merge = vi.fn(() => Merge.keep());
    const one = candidate(1, { carry: '{"page":4}', priority: "low" });
    await plan(taskThat(merge), [job(2)], [one, candidate(9)]);
    expect(merge).toHaveBeenCalledExactlyOnceWith(
      { n: 2 },
      {
        id: one.id,
        payload: { n: 1 },
        carry: { page: 4 },
        runCount: 2,
        failureCount: 1,
        journal: [],
        visibleAt: one.visibleAt,
        priority: "low",
      },
    );
  });

  it("has the time and the priority that an earlier job of the call gave it", async () => {
    const seen: unknown[] = [];
    const task = taskThat((incoming, { visibleAt, priority }) => {
      seen.push([visibleAt, priority]);
      return Merge.with(incoming, undefined, { visibleAt: new Date(5), priority: "high" });
    });
    const one = candidate(1, { priority: "low" });
    await plan(task, [job(2), job(3)], [one]);
    expect(seen).toEqual([
      [one.visibleAt, "low"],
      [new Date(5), "high"],
    ]);
  });

  it("has the initial carry where none is stored", async () => {
    const seen: unknown[] = [];
    const task = taskThat((_, existing) => {
      seen.push(existing.carry);
      return Merge.keep();
    });
    await plan(task, [job(2)], [candidate(1)]);
    expect(seen).toEqual([{ page: 0 }]);
  });

  it("are inputs, though the schema transforms", async () => {
    const seen: unknown[] = [];
    const task = defineTask({
      kind: "k",
      payload: v.pipe(v.string(), v.toUpperCase()),
      dedupKey: (text) => text,
      merge: (incoming, existing) => {
        seen.push(incoming, existing.payload);
        return Merge.keep();
      },
    });
    await plan(task, [job(0, { payload: '"b"' })], [candidate(0, { payload: '"a"' })]);
    expect(seen).toEqual(["b", "a"]);
  });

  it("of an earlier job in the call is runCount 0 and an empty journal", async () => {
    const seen: Pending<Payload, Carry>[] = [];
    const task = taskThat((_, existing) => {
      seen.push(existing);
      return Merge.keep();
    });
    const first = job(1, { priority: "high", delayMs: 5_000 });
    await plan(task, [first, job(2)]);
    expect(seen).toEqual([
      {
        id: first.id,
        payload: { n: 1 },
        carry: { page: 0 },
        runCount: 0,
        failureCount: 0,
        journal: [],
        visibleAt: new Date(now.getTime() + 5_000),
        priority: "high",
      },
    ]);
  });

  it("is what earlier jobs of the call have made of the pending one, their entries included", async () => {
    const seen: Pending<Payload, Carry>[] = [];
    const choices: Decision<Payload, Carry>[] = [
      Merge.with({ n: 7 }, { page: 3 }, { priority: "high" }),
      Merge.keep(),
      Merge.replace(),
      Merge.keep(),
    ];
    const task = taskThat((_, existing) => {
      seen.push(existing);
      return choices.shift() ?? Merge.keep();
    });
    await plan(task, [job(1), job(2), job(3, { priority: "low" }), job(4)], [candidate(0)]);
    expect(seen.map(({ payload: { n } }) => n)).toEqual([0, 7, 7, 3]);
    expect(seen.map(({ carry: { page } }) => page)).toEqual([0, 3, 3, 0]);
    expect(seen.map(({ priority }) => priority)).toEqual(["normal", "high", "high", "low"]);
    expect(seen.at(-1)?.journal.map(({ note }) => note)).toEqual(["with", "keep", "replace"]);
    expect(seen.map(({ runCount }) => runCount)).toEqual([2, 2, 2, 2]);
  });

  it("is what the constant merges of earlier jobs will have made of it, with their entries", async () => {
    const seen: Pending<Payload, Carry>[] = [];
    const task = taskThat((_, existing) => {
      seen.push(existing);
      return Merge.keep();
    });
    await planMerges(
      [
        { job: job(1, { merge: "keep" }) },
        { job: job(2, { merge: "replace" }) },
        { job: job(3, { merge: "keep" }) },
        { job: job(4), task },
      ],
      [candidate(0)],
      { now },
    );
    expect(seen.map(({ payload: { n } }) => n)).toEqual([2]);
    expect(seen[0]?.journal.map(({ note }) => note)).toEqual(["keep", "replace", "keep"]);
  });

  it("may be changed by it, and nobody else sees that", async () => {
    const seen: number[] = [];
    const task = taskThat((incoming, existing) => {
      seen.push(existing.payload.n);
      (existing.payload as { n: number }).n = 99;
      (incoming as { n: number }).n = 99;
      existing.visibleAt.setTime(0);
      return seen.length < 2 ? Merge.keep() : Merge.replace();
    });
    const { jobs } = await plan(task, [job(1), job(2), job(3)], [candidate(0)]);
    expect(seen).toEqual([0, 0, 2]);
    expect(jobs.map(({ payload: text }) => text)).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
  });
});
