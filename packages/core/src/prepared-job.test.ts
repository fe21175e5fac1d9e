import * as v from "valibot";
import { describe, expect, it } from "vitest";
import type { DedupKey } from "./dedup-key.ts";
import type { Duration } from "./duration.ts";
import { Merge } from "./merge.ts";
import type { Priority } from "./priority.ts";
import { defineTask } from "./task.ts";

const payload = v.object({
  account: v.string(),
  since: v.optional(v.pipe(v.string(), v.transform(Number)), "1970"),
});

describe("preparing a job", () => {
  it("stores the input, and hands the output to the callbacks", () => {
    const seen: unknown[] = [];
    const Task = defineTask({
      kind: "sync",
      payload,
      priority: (p) => {
        seen.push(p);
        return "high";
      },
      dedupKey: (p) => {
        seen.push(p);
        return p.since;
      },
      lease: (p) => {
        seen.push(p);
        return "1m";
      },
    });
    expect(Task.prepare({ account: "a" })).toEqual({
      kind: "sync",
      payload: '{"account":"a"}',
      priority: "high",
      dedupKey: "1970",
      merge: "replace",
      leaseMs: 60_000,
    });
    expect(seen).toEqual(new Array(3).fill({ account: "a", since: 1970 }));
  });

  it("says how to merge", () => {
    const merge = (merge: "keep" | (() => ReturnType<typeof Merge.keep>)) =>
      defineTask({ kind: "k", payload: v.string(), merge }).prepare("x");
    expect(merge("keep")).toMatchObject({ merge: "keep" });
    expect(merge(() => Merge.keep())).toMatchObject({ merge: "function" });
  });

  it("has no key where the callback returns none, and a key that is empty text", () => {
    const key = (key: DedupKey | null | undefined) =>
      defineTask({ kind: "k", payload: v.string(), dedupKey: () => key }).prepare("x");
    expect(key(undefined)).toMatchObject({ dedupKey: null });
    expect(key(null)).toMatchObject({ dedupKey: null });
    expect(key("")).toMatchObject({ dedupKey: "" });
    expect(key(5n)).toMatchObject({ dedupKey: "5" });
  });

  it("clamps what the lease function returns", () => {
    const lease = (lease: Duration) =>
      defineTask({ kind: "k", payload: v.string(), lease: () => lease }).prepare("x");
    expect(lease(0)).toMatchObject({ leaseMs: 1000 });
    expect(lease("0.5s")).toMatchObject({ leaseMs: 1000 });
    expect(lease("400d")).toMatchObject({ leaseMs: 365 * 86_400_000 });
    expect(lease(Number.POSITIVE_INFINITY)).toMatchObject({ leaseMs: 365 * 86_400_000 });
  });

  it("leaves a constant lease to the worker's claim", () => {
    const Task = defineTask({ kind: "k", payload: v.string(), lease: "1m" });
    expect(Task.prepare("x")).toMatchObject({ leaseMs: null });
  });

  it("validates the JSON form, which is what a worker will decode", () => {
    const Task = defineTask({
      kind: "k",
      payload: v.object({ at: v.pipe(v.string(), v.isoTimestamp()) }),
    });
    expect(Task.prepare({ at: new Date(0) })).toMatchObject({
      payload: '{"at":"1970-01-01T00:00:00.000Z"}',
    });
    const OnlyDate = defineTask({
      kind: "k",
      payload: v.object({ at: v.date() }) as unknown as v.GenericSchema<{ at: unknown }>,
    });
    expect(() => OnlyDate.prepare({ at: new Date(0) })).toThrow(/accept a string and transform it/);
  });

  it("is done with the input when it returns, also where validation goes on", async () => {
    const Task = defineTask({
      kind: "k",
      payload: v.objectAsync({
        list: v.pipeAsync(
          v.array(v.number()),
          v.checkAsync(async () => true),
        ),
      }),
      dedupKey: (p) => p.list.length,
    });
    const input = { list: [1] };
    const prepared = Task.prepare(input);
    input.list.push(2);
    await expect(prepared).resolves.toMatchObject({ payload: '{"list":[1]}', dedupKey: "1" });
  });

  it("never hands out the caller's own object", () => {
    let seen: unknown;
    const Task = defineTask({
      kind: "k",
      payload: v.unknown(),
      dedupKey: (p) => {
        seen = p;
        return null;
      },
    });
    const input = { a: 1 };
    Task.prepare(input);
    expect(seen).toEqual(input);
    expect(seen).not.toBe(input);
  });

  it("refuses what JSON cannot hold, and what the schema does not take", () => {
    const Task = defineTask({ kind: "sync", payload });
    expect(() => Task.prepare({ account: 1n })).toThrow(
      expect.objectContaining({ code: "serialization", path: "payload.account" }),
    );
    expect(() => Task.prepare(undefined)).toThrow(
      expect.objectContaining({ code: "serialization", path: "payload" }),
    );
    expect(() => Task.prepare({ account: 1 })).toThrow(
      expect.objectContaining({ code: "validation", path: "payload.account" }),
    );
  });
});

describe("a callback of a task", () => {
  const boom = new Error("boom");
  const fail = (): never => {
    throw boom;
  };
  const tasks = {
    priority: (result: () => unknown) =>
      defineTask({ kind: "k", payload: v.string(), priority: result as () => Priority }),
    dedupKey: (result: () => unknown) =>
      defineTask({ kind: "k", payload: v.string(), dedupKey: result as () => DedupKey }),
    lease: (result: () => unknown) =>
      defineTask({ kind: "k", payload: v.string(), lease: result as () => Duration }),
  };
  const names = ["priority", "dedupKey", "lease"] as const;

  it.each(names)("%s that throws fails the job, with the cause", (name) => {
    expect(() => tasks[name](fail).prepare("x")).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        argument: name,
        cause: boom,
        message: `${name} of "k" threw: boom`,
      }),
    );
  });

  it.each(names)(
    "%s that returns a promise fails the job, and its rejection is nobody's",
    async (name) => {
      expect(() => tasks[name](async () => fail()).prepare("x")).toThrow(
        expect.objectContaining({
          code: "invalid-argument",
          argument: name,
          message: `${name} of "k" returned a promise: it must be synchronous`,
        }),
      );
      // An unhandled rejection would fail this run.
      await new Promise((resolve) => setImmediate(resolve));
    },
  );

  it.each([
    ["priority", "urgent"],
    ["priority", 1],
    ["priority", undefined],
    ["dedupKey", {}],
    ["dedupKey", 0.5],
    ["dedupKey", "x".repeat(513)],
    ["dedupKey", "\u0000"],
    ["lease", -1],
    ["lease", Number.NaN],
    ["lease", "5 parsecs"],
    ["lease", undefined],
  ] as const)("%s that returns %s fails the job", (name, result) => {
    expect(() => tasks[name](() => result).prepare("x")).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        argument: name,
        message: expect.stringContaining('of "k"'),
      }),
    );
  });

  it("is not quoted where it quotes the payload", () => {
    const Task = defineTask({
      kind: "k",
      payload: v.object({ token: v.string() }),
      dedupKey: (p) => BigInt(p.token),
      priority: (p) => p.token as Priority,
    });
    expect(() => Task.prepare({ token: "hunter2" })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("hunter2") }),
    );
    const Keyed = defineTask({
      kind: "k",
      payload: v.object({ token: v.string() }),
      dedupKey: (p) => BigInt(p.token),
    });
    expect(() => Keyed.prepare({ token: "hunter2" })).toThrow(
      'dedupKey of "k" threw: see the cause',
    );
  });
});
