import { describe, expect, it } from "vitest";
import type { Duration } from "./duration.ts";
import { isTaskError, TaskError } from "./task-error.ts";

describe("a permanent TaskError", () => {
  it("has a message and perhaps a cause", () => {
    const cause = new Error("404");
    const error = TaskError.permanent("the account was deleted", { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: "TaskError",
      message: "the account was deleted",
      permanent: true,
      afterMs: null,
      cause,
    });
    expect("cause" in TaskError.permanent("gone")).toBe(false);
  });

  it("made of an error has its message, and it as the cause unless another is given", () => {
    const inner = new RangeError("out of range");
    const cause = new Error("deeper");
    expect(TaskError.permanent(inner)).toMatchObject({ message: "out of range", cause: inner });
    expect(TaskError.permanent(inner, { cause })).toMatchObject({ message: "out of range", cause });
  });

  it.each([[undefined], [null], [5], [Symbol("s")], [{}]])(
    "can be made of anything thrown",
    (it) => {
      expect(TaskError.permanent(it).message).not.toBe("");
    },
  );
});

describe("a TaskError to retry", () => {
  it("may name the delay", () => {
    expect(TaskError.retry("busy")).toMatchObject({ permanent: false, afterMs: null });
    expect(TaskError.retry("busy", { after: "10m" })).toMatchObject({ afterMs: 600_000 });
    expect(TaskError.retry("busy", { after: 0 })).toMatchObject({ afterMs: 0 });
    expect(TaskError.retry("busy", { after: -5 })).toMatchObject({ afterMs: 0 });
  });

  it("refuses a delay that is none, and options that do not exist", () => {
    const invalid = expect.objectContaining({ code: "invalid-argument" });
    expect(() => TaskError.retry("busy", { after: "soon" as Duration })).toThrow(invalid);
    expect(() => TaskError.retry("busy", { delay: 5 } as object)).toThrow(invalid);
    expect(() => TaskError.permanent("busy", { after: 5 } as object)).toThrow(invalid);
  });
});

describe("any TaskError", () => {
  it("is recognised by its brand, also from another copy of the package", () => {
    const foreign = Object.assign(new Error("x"), { [Symbol.for("venturi.task-error")]: true });
    expect(isTaskError(TaskError.retry("x"))).toBe(true);
    expect(isTaskError(foreign)).toBe(true);
    expect(isTaskError(new Error("x"))).toBe(false);
    expect(isTaskError(undefined)).toBe(false);
  });
});
