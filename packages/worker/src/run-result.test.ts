import { abortReason, Outcome, TaskError } from "@venturi/core";
import { describe, expect, test } from "vitest";
import { isAbort, resultOfReturn, resultOfThrow, undecodable } from "./run-result.ts";

const hostile = new Proxy(
  {},
  {
    get() {
      throw new Error("hands off");
    },
    has() {
      throw new Error("hands off");
    },
  },
);

describe("what a handler returns", () => {
  test("nothing completes", () => {
    expect(resultOfReturn(undefined)).toEqual({ type: "completed", note: null });
  });

  test("an outcome says what it says", () => {
    expect(resultOfReturn(Outcome.completed("done"))).toEqual({ type: "completed", note: "done" });
    expect(resultOfReturn(Outcome.pauseFor("1s", "later"))).toEqual({
      type: "paused",
      delayMs: 1_000,
      runAt: null,
      note: "later",
    });
    const at = new Date("2030-01-01T00:00:00Z");
    expect(resultOfReturn(Outcome.pauseUntil(at))).toMatchObject({ runAt: at.getTime() });
  });

  test.each([[null], [0], [""], [{}], [[]], [Symbol("s")], [hostile]])(
    "anything else is no outcome (%#)",
    (returned) => {
      expect(resultOfReturn(returned)).toBeNull();
    },
  );

  const forged = (members: object) => ({ [Symbol.for("venturi.outcome")]: true, ...members });

  test.each([
    {},
    { type: "stalled", note: null },
    { type: "paused", note: null },
    { type: "paused", delayMs: Number.NaN, runAt: null, note: null },
    { type: "paused", delayMs: -1, runAt: null, note: null },
    { type: "paused", delayMs: 0, runAt: "soon", note: null },
    { type: "completed", note: 5 },
  ])("nor is an outcome put together by hand that `Outcome` cannot have made (%#)", (members) => {
    expect(resultOfReturn(forged(members))).toBeNull();
  });

  test("one that it can have made counts, with a note that can be stored", () => {
    expect(resultOfReturn(forged({ type: "completed", note: "a\u0000b" }))).toEqual({
      type: "completed",
      note: "a\ufffdb",
    });
  });

  test("one that cannot be read is none", () => {
    const outcome = Object.defineProperty(forged({}), "type", {
      get: () => {
        throw new Error("hands off");
      },
    });
    expect(resultOfReturn(outcome)).toBeNull();
  });
});

describe("what a handler throws", () => {
  test.each([
    [undefined],
    [null],
    [0],
    [""],
    ["text"],
    [{}],
    [Symbol("s")],
    [hostile],
    [Object.freeze(new Error("frozen"))],
    [new AggregateError([new Error("inner")])],
    [Object.assign(new Error("loop"), { cause: undefined })],
  ])("is a failure with a note, whatever it is (%#)", (thrown) => {
    const result = resultOfThrow(thrown, "retry");
    expect(result).toMatchObject({ type: "failed", permanent: false, afterMs: null });
    expect(result.note).toMatch(/./);
  });

  test("a task error decides how the failure is treated", () => {
    expect(resultOfThrow(TaskError.permanent("gone"), "retry")).toMatchObject({
      note: "gone",
      permanent: true,
      discardCarry: false,
    });
    expect(resultOfThrow(TaskError.retry("busy", { after: "10s" }), "dead")).toMatchObject({
      permanent: false,
      afterMs: 10_000,
    });
  });

  test("a defect makes the carry untrustworthy, a failure of the world does not", () => {
    expect(resultOfThrow(new ReferenceError("x"), "retry")).toMatchObject({ discardCarry: true });
    expect(resultOfThrow(new Error("x"), "retry")).toMatchObject({ discardCarry: false });
  });

  test("the panic policy decides about defects, and about nothing else", () => {
    const bug = new TypeError("undefined is not a function");
    expect(resultOfThrow(bug, "retry")).toMatchObject({ permanent: false, discardCarry: true });
    expect(resultOfThrow(bug, "dead")).toMatchObject({ permanent: true, discardCarry: true });
    const lost = new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
    for (const thrown of [new Error("no"), lost, TaskError.retry(bug), undefined]) {
      expect(resultOfThrow(thrown, "dead")).toMatchObject({ permanent: false });
    }
  });

  test("data that does not decode is dead at once", () => {
    expect(undecodable(new Error("payload.a: expected a number"))).toMatchObject({
      permanent: true,
      note: "payload.a: expected a number",
    });
  });
});

describe("whether a handler gave up because it was told to", () => {
  const reason = abortReason("shutdown", "stop");

  test("yes: an error named AbortError, the reason itself, or an error that it caused", () => {
    expect(isAbort(new DOMException("aborted", "AbortError"), reason)).toBe(true);
    expect(isAbort(reason, reason)).toBe(true);
    const wrapped = new Error("outer", { cause: new Error("inner", { cause: reason }) });
    expect(isAbort(wrapped, reason)).toBe(true);
  });

  test("no: any other error, also one whose causes go round in a circle", () => {
    const circular = new Error("round");
    circular.cause = circular;
    for (const thrown of [new Error("no"), undefined, "AbortError", circular, hostile]) {
      expect(isAbort(thrown, reason)).toBe(false);
    }
  });
});

test("a task error put together by hand says only what `TaskError` can have said", () => {
  const forged = (members: object) =>
    Object.assign(new Error("by hand"), { [Symbol.for("venturi.task-error")]: true }, members);
  expect(resultOfThrow(forged({ permanent: "yes", afterMs: "soon" }), "dead")).toMatchObject({
    permanent: false,
    afterMs: null,
  });
  expect(resultOfThrow(forged({ permanent: true, afterMs: Number.NaN }), "retry")).toMatchObject({
    permanent: true,
    afterMs: null,
  });
});
