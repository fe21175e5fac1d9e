import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Backoff } from "./backoff.ts";
import { isUnsentJob } from "./job.ts";
import { Merge } from "./merge.ts";
import { defineTask, isTask } from "./task.ts";

const SendEmail = defineTask({
  kind: "send_email",
  payload: v.object({ to: v.pipe(v.string(), v.email()), subject: v.string() }),
});

const SyncContacts = defineTask({
  kind: "sync_contacts",
  payload: v.object({ account: v.string(), since: v.optional(v.string(), "1970-01-01") }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
  priority: (p) => (p.account === "vip" ? "high" : "normal"),
  dedupKey: (p) => p.account,
  merge: "keep",
  backoff: new Backoff({ base: "1s", cap: "5m" }),
  lease: "30m",
  backstop: 10,
});

describe("a task", () => {
  it("is called for an unsent job, which nobody validates yet", () => {
    const input = { to: "nobody", subject: "Hi" };
    const job = SendEmail(input);
    expect(job).toMatchObject({ kind: "send_email", input });
    expect(job.task).toBe(SendEmail);
    expect(isUnsentJob(job)).toBe(true);
    expect(isUnsentJob({ kind: "send_email", input, task: SendEmail })).toBe(false);
  });

  it("has its kind as its name and cannot be changed", () => {
    expect(SendEmail.kind).toBe("send_email");
    expect(SendEmail.name).toBe("send_email");
    expect(Object.isFrozen(SendEmail)).toBe(true);
  });

  it("is recognised by its brand", () => {
    expect(isTask(SendEmail)).toBe(true);
    expect(isTask(() => SendEmail)).toBe(false);
    expect(isTask(undefined)).toBe(false);
  });

  it("works without its members being called on it", () => {
    const { prepare, decodePayload } = SendEmail;
    expect(prepare({ to: "a@example.com", subject: "Hi" })).toMatchObject({ kind: "send_email" });
    expect(decodePayload('{"to":"a@example.com","subject":"Hi"}')).toMatchObject({ subject: "Hi" });
  });
});

describe("defining a task", () => {
  const payload = v.object({ a: v.string() });

  it.each<[string, unknown]>([
    ["kind", { kind: "", payload }],
    ["kind", { kind: "a\nb", payload }],
    ["kind", { payload }],
    ["payload", { kind: "k" }],
    ["payload", { kind: "k", payload: { a: "string" } }],
    ["carry", { kind: "k", payload, carry: null }],
    ["carry", { kind: "k", payload, carry: { page: 0 } }],
    ["priority", { kind: "k", payload, priority: "urgent" }],
    ["priority", { kind: "k", payload, priority: 0 }],
    ["dedupKey", { kind: "k", payload, dedupKey: "account" }],
    ["merge", { kind: "k", payload, merge: "with" }],
    ["merge", { kind: "k", payload, merge: Merge.keep() }],
    ["backoff", { kind: "k", payload, backoff: { base: "1s" } }],
    ["backoff", { kind: "k", payload, backoff: "1s" }],
    ["lease", { kind: "k", payload, lease: -1 }],
    ["lease", { kind: "k", payload, lease: Number.NaN }],
    ["lease", { kind: "k", payload, lease: "5 parsecs" }],
    ["lease", { kind: "k", payload, lease: null }],
    ["backstop", { kind: "k", payload, backstop: 0 }],
    ["backstop", { kind: "k", payload, backstop: 1.5 }],
    ["backstop", { kind: "k", payload, backstop: Number.POSITIVE_INFINITY }],
    ["backstop", { kind: "k", payload, backstop: "10" }],
    ["prioritty", { kind: "k", payload, prioritty: "high" }],
    ["task", null],
    ["task", "send_email"],
  ])("refuses a bad %s", (argument, spec) => {
    expect(() => defineTask(spec as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument }),
    );
  });

  it("treats members that are undefined as left out", () => {
    const spec = { kind: "k", payload, priority: undefined, merge: undefined, lease: undefined };
    const Task = defineTask(spec as unknown as { kind: "k"; payload: typeof payload });
    expect(Task.prepare({ a: "x" })).toEqual({
      kind: "k",
      payload: '{"a":"x"}',
      priority: "normal",
      dedupKey: null,
      merge: "replace",
      leaseMs: null,
    });
  });
});

describe("what a worker asks a task", () => {
  it("is the payload as its schema gives it", () => {
    expect(SyncContacts.decodePayload('{"account":"a"}')).toEqual({
      account: "a",
      since: "1970-01-01",
    });
    expect(() => SyncContacts.decodePayload('{"bad":1}')).toThrow(
      expect.objectContaining({ code: "validation", path: "payload.account" }),
    );
    expect(() => SyncContacts.decodePayload("{")).toThrow(
      expect.objectContaining({ code: "serialization", path: "payload" }),
    );
  });

  it("is the carry, which begins as the schema's answer to undefined", () => {
    const first = SyncContacts.decodeCarry(null);
    expect(first).toEqual({ page: 0 });
    expect(SyncContacts.decodeCarry('{"page":3}')).toEqual({ page: 3 });
    expect(() => SyncContacts.decodeCarry('"three"')).toThrow(
      expect.objectContaining({ code: "validation", path: "carry" }),
    );
  });

  it("is a carry's JSON text", () => {
    expect(SyncContacts.encodeCarry({ page: 3 })).toBe('{"page":3}');
    expect(SyncContacts.encodeCarry(0)).toBe("0");
    expect(SyncContacts.encodeCarry(null)).toBe("null");
    expect(SyncContacts.encodeCarry(undefined)).toBeNull();
    expect(() => SyncContacts.encodeCarry({ page: 1n })).toThrow(
      expect.objectContaining({ code: "serialization", path: "carry.page" }),
    );
  });

  it("is no carry where the task has none", () => {
    expect(SendEmail.decodeCarry(null)).toBeUndefined();
    expect(SendEmail.decodeCarry('{"left":"over"}')).toBeUndefined();
    expect(SendEmail.encodeCarry({ anything: 1 })).toBeNull();
  });

  it("is asynchronous with an asynchronous schema", async () => {
    const Task = defineTask({
      kind: "k",
      payload: v.pipeAsync(
        v.string(),
        v.transformAsync(async (text) => ({ text })),
      ),
      carry: v.optionalAsync(
        v.pipeAsync(
          v.number(),
          v.checkAsync(async () => true),
        ),
        7,
      ),
    });
    await expect(Task.decodePayload('"x"')).resolves.toEqual({ text: "x" });
    await expect(Task.decodeCarry(null)).resolves.toBe(7);
    await expect(Task.prepare("x")).resolves.toMatchObject({ payload: '"x"' });
  });

  it("is its backoff, constant or by payload", () => {
    const slow = new Backoff({ base: "1m" });
    const ByPayload = defineTask({
      kind: "k",
      payload: v.string(),
      backoff: (p) => (p === "slow" ? slow : (undefined as unknown as Backoff)),
    });
    expect(SyncContacts.backoffFor({})).toEqual({ baseMs: 1000, capMs: 300_000 });
    expect(SendEmail.backoffFor({})).toBeNull();
    expect(ByPayload.backoffFor("slow")).toBe(slow);
    expect(() => ByPayload.backoffFor("other")).toThrow(
      'backoff of "k" returned undefined: return a Backoff',
    );
  });

  it("is its constant lease, clamped, and its backstop", () => {
    const lease = (value: number | "1s") =>
      defineTask({ kind: "k", payload: v.string(), lease: value }).leaseMs;
    expect(SyncContacts.leaseMs).toBe(1_800_000);
    expect(SendEmail.leaseMs).toBeNull();
    expect([lease(0), lease(500), lease(Number.POSITIVE_INFINITY)]).toEqual([
      1000,
      1000,
      365 * 86_400_000,
    ]);
    expect(SyncContacts.backstop).toBe(10);
    expect(SendEmail.backstop).toBeUndefined();
    expect(defineTask({ kind: "k", payload: v.string(), backstop: null }).backstop).toBeNull();
  });
});
