import type { StandardSchemaV1 } from "@standard-schema/spec";
import * as v from "valibot";
import { assertType, describe, expectTypeOf, it } from "vitest";
import {
  Backoff,
  type Decision,
  type Duration,
  defineTask,
  type JobId,
  Merge,
  type Priority,
  type Task,
  type TaskCarry,
  type TaskInput,
  type TaskPayload,
  type UnsentJob,
} from "./index.ts";

const SendEmail = defineTask({
  kind: "send_email",
  payload: v.object({ to: v.pipe(v.string(), v.email()), subject: v.string() }),
});

const SyncContacts = defineTask({
  kind: "sync_contacts",
  payload: v.object({ account: v.string(), since: v.optional(v.string(), "1970-01-01") }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
  priority: (p) => {
    expectTypeOf(p).toEqualTypeOf<{ account: string; since: string }>();
    return p.account === "vip" ? "high" : "normal";
  },
  dedupKey: (p) => p.account,
  merge: (incoming, existing) => {
    expectTypeOf(incoming).toEqualTypeOf<{ account: string; since?: string | undefined }>();
    expectTypeOf(existing.payload).toEqualTypeOf<typeof incoming>();
    expectTypeOf(existing.carry).toEqualTypeOf<{ page: number }>();
    expectTypeOf(existing.id).toEqualTypeOf<JobId>();
    expectTypeOf(existing.visibleAt).toEqualTypeOf<Date>();
    return existing.carry.page > 3 ? Merge.keep() : Merge.with(incoming, existing.carry);
  },
  backoff: new Backoff({ base: "1s", cap: "5m" }),
  lease: "30m",
  backstop: 10,
});

const Later = defineTask({
  kind: "later",
  payload: v.objectAsync({
    at: v.pipeAsync(
      v.string(),
      v.transform((text) => new Date(text)),
    ),
  }),
  priority: (p) => (p.at.getTime() > 0 ? "high" : "low"),
});

const payload = v.object({ a: v.string() });
const carry = v.optional(v.object({ page: v.number() }), { page: 0 });

describe("a task", () => {
  it("knows its kind, input, payload and carry", () => {
    expectTypeOf(SendEmail.kind).toEqualTypeOf<"send_email">();
    expectTypeOf(SyncContacts).parameter(0).toEqualTypeOf<{
      account: string;
      since?: string | undefined;
    }>();
    expectTypeOf<TaskInput<typeof SyncContacts>>().toEqualTypeOf<{
      account: string;
      since?: string | undefined;
    }>();
    expectTypeOf<TaskPayload<typeof SyncContacts>>().toEqualTypeOf<{
      account: string;
      since: string;
    }>();
    expectTypeOf<TaskCarry<typeof SyncContacts>>().toEqualTypeOf<{ page: number }>();
    expectTypeOf<TaskPayload<typeof Later>>().toEqualTypeOf<{ at: Date }>();
    expectTypeOf<TaskCarry<typeof SendEmail>>().toEqualTypeOf<undefined>();
  });

  it("takes only what its schema takes", () => {
    expectTypeOf(SendEmail({ to: "a@example.com", subject: "Hi" })).toEqualTypeOf<
      UnsentJob<"send_email">
    >();
    // @ts-expect-error a member of another type
    SendEmail({ to: 1, subject: "" });
    // @ts-expect-error a member is missing
    SendEmail({ to: "" });
    // @ts-expect-error a member too many
    SendEmail({ to: "", subject: "", cc: "" });
    // @ts-expect-error the output's type is not the input's
    Later({ at: new Date() });
  });

  it("goes into lists with others, and so do its jobs", () => {
    assertType<Task[]>([SendEmail, SyncContacts, Later]);
    assertType<UnsentJob[]>([SendEmail({ to: "", subject: "" }), Later({ at: "" })]);
  });

  it("can be taken by a generic function", () => {
    function send<I>(task: Task<string, I>, input: I): UnsentJob {
      return task(input);
    }
    send(SyncContacts, { account: "x" });
    // @ts-expect-error wrong input
    send(SyncContacts, { n: 1 });
    const register = <P, C>(
      task: Task<string, never, P, C>,
      run: (payload: P, carry: C) => void,
    ) => [task, run];
    register(SyncContacts, (p, c) => {
      expectTypeOf(p).toEqualTypeOf<{ account: string; since: string }>();
      expectTypeOf(c).toEqualTypeOf<{ page: number }>();
    });
    register(Later, (p, c) => {
      expectTypeOf(p).toEqualTypeOf<{ at: Date }>();
      expectTypeOf(c).toEqualTypeOf<undefined>();
    });
  });

  it("infers its callbacks also where they stand before the schemas", () => {
    defineTask({
      kind: "flipped",
      dedupKey: (p) => p.a,
      merge: (incoming, existing) =>
        existing.carry.page > 3 ? Merge.replace() : Merge.with(incoming, { page: 1 }),
      lease: (p) => (p.a ? "1h" : 5000),
      backoff: (p) => new Backoff({ base: p.a === "" ? 1 : "2s" }),
      carry,
      payload,
    });
  });

  it("refuses options of a wrong type", () => {
    // @ts-expect-error unknown option
    defineTask({ kind: "x", payload, prioritty: "high" });
    // @ts-expect-error no such priority
    defineTask({ kind: "x", payload, priority: "urgent" });
    // @ts-expect-error an object is no key
    defineTask({ kind: "x", payload, dedupKey: () => ({}) });
    // @ts-expect-error the callback must be synchronous
    defineTask({ kind: "x", payload, dedupKey: async () => "key" });
    // @ts-expect-error text from configuration goes through parseDuration
    defineTask({ kind: "x", payload, lease: "x" as string });
    // @ts-expect-error not a schema
    defineTask({ kind: "x", payload: { a: "string" } });
  });
});

describe("a payload", () => {
  it("may be anything that JSON holds", () => {
    defineTask({ kind: "x", payload: v.unknown() });
    defineTask({ kind: "x", payload: v.any() });
    defineTask({ kind: "x", payload: v.object({}) });
    defineTask({ kind: "x", payload: v.null() });
    defineTask({ kind: "x", payload: v.record(v.string(), v.array(v.nullish(v.number()))) });
    defineTask({ kind: "x", payload: v.tuple([v.string(), v.boolean()]) });
    defineTask({ kind: "x", payload: v.variant("t", [v.object({ t: v.literal("a") })]) });
    defineTask({ kind: "x", payload: v.pipe(v.string(), v.brand("Id")) });
    defineTask({ kind: "x", payload: {} as StandardSchemaV1<string | { a: string }, Date> });
    interface Tree {
      children: Tree[];
    }
    defineTask({ kind: "x", payload: {} as StandardSchemaV1<Tree> });
  });

  it("may not be anything else", () => {
    // @ts-expect-error a Date
    defineTask({ kind: "x", payload: v.date() });
    // @ts-expect-error a Date in an object
    defineTask({ kind: "x", payload: v.object({ at: v.date() }) });
    // @ts-expect-error a Date in an optional member
    defineTask({ kind: "x", payload: v.object({ at: v.optional(v.date()) }) });
    const deep = v.object({ a: v.array(v.object({ d: v.union([v.string(), v.date()]) })) });
    // @ts-expect-error a Date as one of several, deep inside
    defineTask({ kind: "x", payload: deep });
    // @ts-expect-error a bigint
    defineTask({ kind: "x", payload: v.object({ n: v.bigint() }) });
    // @ts-expect-error a Map
    defineTask({ kind: "x", payload: v.map(v.string(), v.string()) });
    // @ts-expect-error a Set
    defineTask({ kind: "x", payload: v.object({ s: v.set(v.string()) }) });
    // @ts-expect-error a function
    defineTask({ kind: "x", payload: v.object({ f: v.function() }) });
    // @ts-expect-error binary data
    defineTask({ kind: "x", payload: v.object({ b: v.instance(Uint8Array) }) });
  });
});

describe("a carry", () => {
  it("may come from any schema that takes undefined and its own output", () => {
    defineTask({ kind: "x", payload, carry });
    defineTask({ kind: "x", payload, carry: v.optional(v.number()) });
    defineTask({ kind: "x", payload, carry: v.unknown() });
    defineTask({ kind: "x", payload, carry: v.optional(v.union([v.string(), v.number()]), 0) });
  });

  it("may not come from any other", () => {
    // @ts-expect-error undefined is refused: there is no initial carry
    defineTask({ kind: "x", payload, carry: v.object({ page: v.number() }) });
    const oneWay = v.optional(v.pipe(v.string(), v.transform(Number)), "1");
    // @ts-expect-error the output is no input: the next run could not validate it
    defineTask({ kind: "x", payload, carry: oneWay });
    // @ts-expect-error JSON cannot hold it
    defineTask({ kind: "x", payload, carry: v.optional(v.object({ at: v.date() })) });
  });
});

describe("a merge function", () => {
  it("may leave the carry out, and name time and priority", () => {
    defineTask({ kind: "x", payload, carry, merge: (incoming) => Merge.with(incoming) });
    defineTask({
      kind: "x",
      payload,
      carry,
      merge: (incoming) =>
        Merge.with(incoming, undefined, { visibleAt: { epochMilliseconds: 5 }, priority: "high" }),
    });
    const decide = (): Decision<{ a: string }, undefined> => Merge.with({ a: "" });
    defineTask({ kind: "x", payload, merge: decide });
  });

  it("returns a decision about this task's jobs", () => {
    // @ts-expect-error a promise
    defineTask({ kind: "x", payload, merge: async () => Merge.keep() });
    // @ts-expect-error another payload
    defineTask({ kind: "x", payload, merge: () => Merge.with({ a: 1 }) });
    // @ts-expect-error another carry
    defineTask({ kind: "x", payload, carry, merge: (i) => Merge.with(i, { page: "x" }) });
    // @ts-expect-error a word belongs into the place of the function
    defineTask({ kind: "x", payload, merge: () => "keep" });
    // @ts-expect-error an object that looks like one
    defineTask({ kind: "x", payload, merge: () => ({ decision: "keep" as const }) });
  });
});

describe("small types", () => {
  it("say what they take", () => {
    assertType<Duration[]>([0, 1.5, "5s", "1.5h", "250ms", "7d"]);
    // @ts-expect-error no unit
    assertType<Duration>("5");
    // @ts-expect-error no such unit
    assertType<Duration>("5 parsecs");
    // @ts-expect-error not a number
    assertType<Duration>("Infinityms");
    assertType<Priority[]>(["high", "normal", "low"]);
  });
});
