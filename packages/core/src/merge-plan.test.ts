import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { createJobIds } from "./job-id.ts";
import { type Decision, Merge, type MergeFunction, type Pending } from "./merge.ts";
import { type MergeCandidate, planMerges } from "./merge-plan.ts";
import type { EnqueueJob } from "./store.ts";
import { defineTask, type Task } from "./task.ts";

const now = new Date("2026-01-01T00:00:00Z");
const newId = createJobIds({ now: () => 0, random: () => 0.5 });

type Payload = { readonly n: number };
type Carry = { readonly page: number };

const payload = v.object({ n: v.pipe(v.number(), v.maxValue(1_000)) });
const carry = v.optional(v.object({ page: v.number() }), { page: 0 });

function taskThat(merge: MergeFunction<Payload, Carry>) {
  return defineTask({ kind: "k", payload, carry, dedupKey: () => "key", merge });
}

const sum = taskThat((incoming, existing) =>
  Merge.with({ n: incoming.n + existing.payload.n }, existing.carry),
);

function job(n: unknown, changes: Partial<EnqueueJob> = {}): EnqueueJob {
  const text = JSON.stringify({ n });
  return { id: newId(), kind: "k", payload: text, priority: "normal", dedupKey: "key", ...changes };
}

function candidate(n: unknown, changes: Partial<MergeCandidate> = {}): MergeCandidate {
  return {
    id: newId(),
    version: 3,
    runCount: 2,
    failureCount: 1,
    priority: "normal",
    visibleAt: new Date(now.getTime() + 60_000),
    payload: JSON.stringify({ n }),
    carry: null,
    journal: [],
    ...changes,
  };
}

/** The plan for jobs that all ask the same task. */
function plan(task: Task, jobs: readonly EnqueueJob[], candidates: readonly MergeCandidate[] = []) {
  return planMerges(
    jobs.map((one) => ({ job: one, task })),
    candidates,
    { now },
  );
}

async function decisions(...args: Parameters<typeof plan>) {
  const { jobs, failure } = await plan(...args);
  if (failure !== null) throw failure.error;
  return jobs.map(({ decision }) => decision);
}

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
});

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

  it("does not get parts of payloads into the message", async () => {
    const task = defineTask({
      kind: "k",
      payload: v.string(),
      dedupKey: () => "key",
      merge: (incoming, existing) => {
        throw new Error(`${incoming} against ${existing.payload}`);
      },
    });
    const { failure } = await plan(
      task,
      [job(0, { payload: '"incoming-secret"' })],
      [candidate(0, { payload: '"stored-secret"' })],
    );
    expect(failure?.error).toMatchObject({ message: expect.not.stringContaining("secret") });
  });
});

describe("for any jobs of one key", () => {
  const choice = fc.constantFrom("keep", "replace", "with", "independent");
  const step = fc.record({
    choice,
    n: fc.integer({ min: 0, max: 9 }),
    constant: fc.boolean(),
    again: fc.option(fc.nat(), { nil: undefined }),
  });
  const stored = fc.record({ n: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant("bad")) });

  it("applying the decisions one by one finds every candidate as it was decided about", async () => {
    const property = fc.asyncProperty(
      fc.array(stored, { maxLength: 4 }),
      fc.array(step, { minLength: 1, maxLength: 12 }),
      async (existing, steps) => {
        const candidates = existing.map(({ n }) => candidate(n, { version: 0 }));
        const jobs: { job: EnqueueJob; task?: Task }[] = [];
        for (const { choice: chosen, n, constant, again } of steps) {
          const repeated = again === undefined ? undefined : jobs[again % (jobs.length || 1)];
          if (repeated !== undefined) {
            jobs.push(repeated);
          } else if (constant && chosen !== "with") {
            jobs.push({ job: job(n, { merge: chosen as "keep" }) });
          } else {
            const made = { keep: Merge.keep(), replace: Merge.replace() } as const;
            const task = taskThat((incoming, { payload: { n: m } }) =>
              chosen === "with"
                ? Merge.with({ n: incoming.n + m })
                : chosen === "independent"
                  ? Merge.independent()
                  : made[chosen as "keep"],
            );
            jobs.push({ job: job(n), task });
          }
        }
        const { jobs: decided, failure } = await planMerges(jobs, candidates, { now });
        expect(failure).toBeNull();

        // A store as small as can be.
        const rows = candidates.map(({ id, payload: text }) => ({ id, text, version: 0 }));
        const known = new Set<string>();
        for (const { id, payload: text, merge, decision } of decided) {
          if (known.has(id)) continue;
          known.add(id);
          const action = decision?.action ?? merge;
          const named =
            decision !== undefined && "candidate" in decision ? decision.candidate : rows[0]?.id;
          const row = rows.find((one) => one.id === named);
          if (action === "insert") {
            const skipped = decision?.action === "insert" ? decision.skipped : [];
            expect(rows.filter((one) => !skipped.includes(one.id))).toEqual([]);
          }
          if (action === "insert" || action === "independent" || row === undefined) {
            expect(action === "insert" || action === "independent" || rows.length === 0).toBe(true);
            rows.push({ id, text, version: 0 });
            continue;
          }
          if (decision !== undefined && "version" in decision) {
            expect(row.version).toBe(decision.version);
            expect(row.text).not.toContain("bad");
          }
          if (action === "keep") continue;
          row.version += 1;
          row.text = decision?.action === "with" ? decision.payload : text;
        }
      },
    );
    await fc.assert(property, { numRuns: 500 });
  });

  it("a sum is the sum of all, however they are cut into calls", async () => {
    const numbers = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 20 });
    const property = fc.asyncProperty(numbers, fc.nat(), async (all, cut) => {
      let pending: MergeCandidate | undefined;
      const at = cut % (all.length + 1);
      for (const part of [all.slice(0, at), all.slice(at)]) {
        const { jobs } = await plan(
          sum,
          part.map((n) => job(n)),
          pending ? [pending] : [],
        );
        for (const { id, payload: text, decision } of jobs) {
          if (decision?.action !== "with")
            pending = candidate(0, { id, payload: text, version: 0 });
          else if (pending !== undefined) {
            expect(decision.version).toBe(pending.version);
            const version = pending.version + 1;
            pending = { ...pending, payload: decision.payload, version };
          }
        }
      }
      expect(JSON.parse(pending?.payload ?? "")).toEqual({ n: all.reduce((a, b) => a + b, 0) });
    });
    await fc.assert(property);
  });
});
