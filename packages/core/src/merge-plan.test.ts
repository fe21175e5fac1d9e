import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type Decision, Merge } from "./merge.ts";
import { planMerges } from "./merge-plan.ts";
import { defineTask } from "./task.ts";
import {
  type Carry,
  candidate,
  job,
  now,
  type Payload,
  payload,
  plan,
  sum,
  taskThat,
} from "./testing/merge-jobs.ts";

async function decisions(...args: Parameters<typeof plan>) {
  const { jobs, failure } = await plan(...args);
  if (failure !== null) throw failure.error;
  return jobs.map(({ decision }) => decision);
}

describe("decisions", () => {
  it("name the candidate with its version and run count", async () => {
    const one = candidate(1);
    const chosen = { candidate: one.id, version: 3, runCount: 2 };
    expect(await decisions(taskThat(Merge.keep), [job(2)], [one])).toEqual([
      { action: "keep", ...chosen },
    ]);
    expect(await decisions(taskThat(Merge.replace), [job(2)], [one])).toEqual([
      { action: "replace", ...chosen },
    ]);
    expect(await decisions(taskThat(Merge.independent), [job(2)], [one])).toEqual([
      { action: "independent" },
    ]);
    expect(await decisions(sum, [job(2)], [one])).toEqual([
      { action: "with", ...chosen, payload: '{"n":3}', carry: '{"page":0}' },
    ]);
  });

  it("are an insert where nobody is pending", async () => {
    expect(await decisions(sum, [job(1)])).toEqual([{ action: "insert", skipped: [] }]);
  });

  it("leave the carry as stored, and time and priority as they are, unless they name them", async () => {
    const bare = taskThat((incoming) => Merge.with(incoming));
    expect((await decisions(bare, [job(2)], [candidate(1)]))[0]).not.toHaveProperty("carry");
    const visibleAt = new Date(5);
    const named = taskThat((incoming) =>
      Merge.with(incoming, undefined, { visibleAt, priority: "low" }),
    );
    expect((await decisions(named, [job(2)], [candidate(1)]))[0]).toMatchObject({
      visibleAt: 5,
      priority: "low",
    });
  });

  it("do not store a carry for a task that has none", async () => {
    const task = defineTask({
      kind: "k",
      payload,
      dedupKey: () => "key",
      merge: (incoming) => Merge.with(incoming, { page: 1 } as never),
    });
    expect((await decisions(task, [job(2)], [candidate(1)]))[0]).not.toHaveProperty("carry");
  });

  it("take the lease that the given payload asks for", async () => {
    const task = defineTask({
      kind: "k",
      payload,
      dedupKey: () => "key",
      lease: ({ n }) => n * 1_000,
      merge: (incoming, existing) => Merge.with({ n: incoming.n + existing.payload.n }),
    });
    const { jobs } = await plan(task, [job(2, { leaseMs: 2_000 })], [candidate(3)]);
    expect(jobs[0]?.leaseMs).toBe(5_000);
  });

  it("pass over a job that the store knows already, or that stands in the call twice", async () => {
    const twice = job(5);
    const known = job(7);
    const pending = candidate(1);
    const jobs = [job(9, { id: pending.id }), known, twice, twice];
    const { jobs: decided } = await planMerges(
      jobs.map((one) => ({ job: one, task: sum })),
      [pending],
      { now, known: new Set([known.id]) },
    );
    const insert = { action: "insert", skipped: [] };
    expect(decided.map(({ decision }) => decision)).toEqual([
      insert,
      insert,
      expect.objectContaining({ action: "with", payload: '{"n":6}', version: 3 }),
      insert,
    ]);
  });

  it("leave a known job of a constant merge as it is: the store decides about it", async () => {
    const known = job(7);
    const { jobs } = await planMerges([{ job: known }], [candidate(1)], {
      now,
      known: new Set([known.id]),
    });
    expect(jobs).toEqual([known]);
  });

  it("foresee what the constant merges of other tasks of the kind make of the pending job", async () => {
    const { jobs } = await planMerges(
      [
        { job: job(1, { merge: "keep" }) },
        { job: job(2, { merge: "replace" }) },
        { job: job(3, { merge: "independent" }) },
        { job: job(4), task: sum },
      ],
      [candidate("no number")],
      { now },
    );
    expect(jobs.map(({ decision }) => decision)).toEqual([
      undefined,
      undefined,
      undefined,
      // The constant replace has repaired it.
      expect.objectContaining({ action: "with", version: 4, payload: '{"n":6}' }),
    ]);
  });
});

describe("pending jobs that today's schemas refuse", () => {
  const bad = [
    candidate("text"),
    candidate(1, { payload: "null" }),
    candidate(1, { carry: '"text"' }),
  ];

  it("are skipped for the next one", async () => {
    const good = candidate(1);
    const { jobs, skipped } = await plan(sum, [job(2)], [...bad, good]);
    expect(skipped).toEqual(bad.map(({ id }) => id));
    expect(jobs[0]?.decision).toMatchObject({ action: "with", candidate: good.id });
  });

  it("neither block nor multiply: the first job is inserted, the next merges into it", async () => {
    const first = job(1);
    const { jobs, skipped } = await plan(sum, [first, job(2)], bad);
    expect(jobs.map(({ decision }) => decision)).toEqual([
      { action: "insert", skipped },
      expect.objectContaining({ action: "with", candidate: first.id, version: 0, runCount: 0 }),
    ]);
  });

  it("are told by asynchronous schemas too", async () => {
    const asynchronous = v.pipeAsync(
      v.object({ n: v.number() }),
      v.checkAsync(async ({ n }) => n > 0),
    );
    const task = defineTask({
      kind: "k",
      payload: asynchronous,
      dedupKey: () => "key",
      merge: (incoming, existing) => Merge.with({ n: incoming.n + existing.payload.n }),
    });
    const [refused, good] = [candidate(-1), candidate(4)];
    const { jobs, skipped } = await plan(task, [job(2)], [refused, good]);
    expect(skipped).toEqual([refused.id]);
    expect(jobs[0]?.decision).toMatchObject({ payload: '{"n":6}' });
  });

  it("refuse the carry of a decision as well, also where that is told later", async () => {
    const task = defineTask({
      kind: "k",
      payload,
      carry: v.optionalAsync(
        v.pipeAsync(
          v.object({ page: v.number() }),
          v.checkAsync(async ({ page }) => page > 0),
        ),
        { page: 1 },
      ),
      dedupKey: () => "key",
      merge: (incoming) => Merge.with(incoming, { page: -1 }),
    });
    const { jobs, failure } = await plan(task, [job(2)], [candidate(4, { carry: '{"page":2}' })]);
    expect(jobs).toEqual([]);
    expect(failure).toMatchObject({ index: 0, error: { code: "validation" } });
  });
});

/** A sound decision with something else in it. */
function altered(changes: object): object {
  return { ...Merge.with({ n: 1 }), ...changes };
}

describe("a merge function that fails", () => {
  const failing: readonly [string, () => unknown, string, RegExp][] = [
    [
      "throws",
      () => {
        throw new RangeError("no");
      },
      "merge",
      /"k" threw: no/,
    ],
    ["returns a promise", () => Promise.reject(new Error("late")), "merge", /promise/],
    ["returns nothing", () => undefined, "merge", /no decision/],
    ["returns a payload", () => ({ n: 1 }), "merge", /no decision/],
    ["alters what it decides", () => altered({ decision: "drop" }), "merge", /no decision/],
    ["alters its priority", () => altered({ priority: "urgent" }), "merge", /no decision/],
    ["alters its time", () => altered({ visibleAt: new Date(Number.NaN) }), "merge", /no decision/],
    ["makes its time a number", () => altered({ visibleAt: 5 }), "merge", /no decision/],
    ["gives a payload that is refused", () => Merge.with({ n: "x" }), "validation", /payload/],
    ["gives one that JSON cannot hold", () => Merge.with({ n: 1n }), "serialization", /payload/],
    ["gives a carry that is refused", () => Merge.with({ n: 1 }, 5), "validation", /carry/],
    [
      "throws nothing that is an error",
      () => {
        throw undefined;
      },
      "merge",
      /threw/,
    ],
  ];

  it.each(failing)("and %s is told with the job's place", async (_, fail, code, message) => {
    const calls: number[] = [];
    const task = taskThat((incoming) => {
      calls.push(incoming.n);
      return incoming.n === 2 ? (fail() as Decision<Payload, Carry>) : Merge.keep();
    });
    const { jobs, failure } = await plan(task, [job(1), job(2), job(3)], [candidate(0)]);
    expect(jobs).toHaveLength(1);
    expect(failure).toEqual({
      index: 1,
      error: expect.objectContaining({
        code,
        isRetryable: false,
        message: expect.stringMatching(message),
      }),
    });
    expect(calls).toEqual([1, 2]);
  });

  it("is told with what it threw as the cause, and without one if it threw nothing", async () => {
    const thrown = new RangeError("no");
    const failureOf = async (merge: () => Decision<Payload, Carry>) =>
      (await plan(taskThat(merge), [job(1)], [candidate(0)])).failure?.error;
    const threw = await failureOf(() => {
      throw thrown;
    });
    expect(threw).toHaveProperty("cause", thrown);
    expect(await failureOf(() => undefined as never)).not.toHaveProperty("cause");
  });

  it.each(["incoming", "stored"])(
    "does not get parts of the %s payload into the message",
    async (whose) => {
      const task = defineTask({
        kind: "k",
        payload: v.string(),
        dedupKey: () => "key",
        merge: (incoming, existing) => {
          throw new Error(`it is ${whose === "incoming" ? incoming : existing.payload}`);
        },
      });
      const { failure } = await plan(
        task,
        [job(0, { payload: '"incoming-secret"' })],
        [candidate(0, { payload: '"stored-secret"' })],
      );
      expect(failure?.error).toMatchObject({ message: expect.not.stringContaining("secret") });
    },
  );
});
