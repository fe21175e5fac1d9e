import { defineTask, isVenturiError, VenturiError } from "@venturi/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count } from "./testing/tasks.ts";

const refused = Object.assign(new Error("no"), { code: "42501" });
const queue = new Queue({ query: () => Promise.reject(refused) });
const Any = defineTask({ kind: "any", payload: v.unknown() });

async function failureOf(call: () => Promise<unknown>): Promise<VenturiError> {
  try {
    await call();
  } catch (error) {
    if (isVenturiError(error)) return error;
    throw error;
  }
  throw new Error("it was enqueued");
}

let deep: unknown = 1n;
for (let depth = 0; depth < 40; depth += 1) deep = { deep };

async function placeOrder() {
  await queue.enqueue(Count({ n: 1 }));
}
async function placeLater() {
  await queue.enqueueAt(Count({ n: 1 }), new Date());
}
async function placeMany() {
  await queue.enqueueMany([Count({ n: 1 })]);
}
async function placeDeep() {
  await queue.enqueue(Any(deep));
}
async function placeDeepItem() {
  await queue.enqueueMany([Count({ n: 1 }), Any(deep)]);
}

describe("the stack of an error names who called", () => {
  it.each([
    ["enqueue", "database", placeOrder],
    ["enqueueAt", "database", placeLater],
    ["enqueueMany", "database", placeMany],
    ["enqueue, with a payload that goes deep", "serialization", placeDeep],
    ["enqueueMany, with such an item", "serialization", placeDeepItem],
  ])("of %s", async (_, code, call) => {
    const { stack, ...error } = await failureOf(call);
    expect(error.code).toBe(code);
    expect(stack).toContain(call.name);
    expect(stack).toContain("caller-stack.test.ts");
  });

  it("also where both shared a statement: each has an error of its own", async () => {
    async function first() {
      await queue.enqueue(Count({ n: 1 }));
    }
    async function second() {
      await queue.enqueue(Count({ n: 2 }));
    }
    const [one, other] = await Promise.all([failureOf(first), failureOf(second)]);
    expect(one).not.toBe(other);
    expect(one.stack).toMatch(/first/);
    expect(one.stack).not.toMatch(/second/);
    expect(other.stack).toMatch(/second/);
    expect([one.cause, other.cause]).toEqual([refused, refused]);
  });

  it("and all else of the error is as it was", async () => {
    const options = {
      cause: refused,
      isRetryable: false,
      argument: "a",
      path: "payload.b",
      issues: [],
      sqlState: "40001",
      id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
      ids: ["01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    };
    const error = new VenturiError("database", "as it was", options);
    error.name = "AbortError";
    const store = { portVersion: 1, capabilities: {}, enqueue: () => Promise.reject(error) };
    const got = await failureOf(() => new Queue(store as never).enqueue(Count({ n: 1 })));
    expect(got).not.toBe(error);
    expect({ ...got, name: got.name, message: got.message, cause: got.cause }).toEqual({
      ...error,
      ...options,
      name: "AbortError",
      message: "as it was",
    });
    expect(got.stack).not.toContain("error-anew");
  });

  it("but the reason of a signal is the caller's own, whatever it is", async () => {
    const never = new Queue({ query: () => new Promise<never>(() => undefined) });
    const reason = new VenturiError("shutdown", "the request is gone");
    const controller = new AbortController();
    const call = failureOf(() => never.enqueue(Count({ n: 1 }), { signal: controller.signal }));
    controller.abort(reason);
    expect(await call).toBe(reason);
  });
});
