import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeFailure, MAX_NOTE_LENGTH } from "./failure-note.ts";
import { TaskError } from "./task-error.ts";
import { unstorableText } from "./text.ts";

const throwing = new Proxy(new Error("x"), {
  get() {
    throw new Error("trap");
  },
  getPrototypeOf() {
    throw new Error("trap");
  },
});

describe("a failure", () => {
  it("is told by its message, with name, code and stack as detail", () => {
    const error = Object.assign(new RangeError("out of range"), { code: "E_RANGE" });
    expect(describeFailure(error)).toEqual({
      note: "out of range",
      detail: { name: "RangeError", code: "E_RANGE", stack: error.stack },
    });
  });

  it.each<[string, unknown, string, string]>([
    ["undefined", undefined, "undefined was thrown", "undefined"],
    ["null", null, "null was thrown", "object"],
    ["zero", 0, "0 was thrown", "number"],
    ["a BigInt", 5n, "5 was thrown", "bigint"],
    ["text", "no luck", "no luck", "string"],
    ["empty text", "", "an empty string was thrown", "string"],
    ["a symbol", Symbol("s"), "Symbol(s) was thrown", "symbol"],
    ["a function", () => 1, "a function was thrown", "Function"],
    ["an empty object", {}, "Object without a message", "Object"],
    ["an object without a prototype", Object.create(null), "Object without a message", "Object"],
    ["an object with a message", { message: "odd" }, "odd", "Object"],
    ["an error without a message", new TypeError(), "TypeError without a message", "TypeError"],
    ["an error of blanks", new Error(" \n "), "Error without a message", "Error"],
    ["a proxy that throws", throwing, "Object without a message", "Object"],
    ["a message that is no text", { message: { a: 1 } }, "Object without a message", "Object"],
  ])("may be %s", (_, thrown, note, name) => {
    const failure = describeFailure(thrown);
    expect(failure.note).toBe(note);
    expect(failure.detail.name).toBe(name);
  });

  it("may have a getter that throws", () => {
    class Odd extends Error {
      override get message(): string {
        throw new Error("trap");
      }
      override get name(): string {
        throw new Error("trap");
      }
      override get stack(): string {
        throw new Error("trap");
      }
    }
    expect(describeFailure(new Odd())).toEqual({
      note: "Odd without a message",
      detail: { name: "Odd" },
    });
  });

  it("may be frozen, circular, or several at once", () => {
    const circular = new Error("round");
    circular.cause = circular;
    expect(describeFailure(Object.freeze(circular)).note).toBe("round");
    const connections = new AggregateError([new Error("::1 refused"), new Error("127.0.0.1 too")]);
    expect(describeFailure(connections).note).toBe("::1 refused; 127.0.0.1 too");
    expect(describeFailure(new AggregateError([], "all failed")).note).toBe("all failed");
    expect(describeFailure(new AggregateError([])).note).toBe("AggregateError without a message");
  });

  it("may have a numeric code", () => {
    expect(describeFailure(Object.assign(new Error("x"), { code: 42 })).detail.code).toBe("42");
    const odd = Object.assign(new Error("x"), { code: { nested: true } });
    expect("code" in describeFailure(odd).detail).toBe(false);
  });

  it("wrapped in a TaskError is described by where it began", () => {
    const inner = Object.assign(new RangeError("out of range"), { code: "E_RANGE" });
    const { note, detail } = describeFailure(TaskError.permanent(inner));
    expect(note).toBe("out of range");
    expect(detail).toEqual({ name: "RangeError", code: "E_RANGE", stack: inner.stack });
    expect(describeFailure(TaskError.retry("busy")).detail.name).toBe("TaskError");
  });

  it("has a note that the database can store", () => {
    expect(describeFailure(new Error("a\u0000b")).note).toBe("a\ufffdb");
    expect(describeFailure(new Error("a\ud800")).note).toBe("a\ufffd");
    expect(describeFailure("\u0000").note).toBe("\ufffd");
  });

  it("of 10 MB is cut short", () => {
    const { note, detail } = describeFailure(new Error("x".repeat(10_000_000)));
    expect(note).toHaveLength(MAX_NOTE_LENGTH);
    expect(note.endsWith("…")).toBe(true);
    expect(JSON.stringify(detail).length).toBeLessThan(10_000);
  });

  it("is always told, storable and bounded, whatever was thrown", () => {
    const thrown = fc.oneof(
      fc.anything({ withBigInt: true, withBoxedValues: true, withNullPrototype: true }),
      fc.record({
        message: fc.anything(),
        name: fc.anything(),
        code: fc.anything(),
        stack: fc.anything(),
      }),
      fc.string({ unit: "binary" }).map((message) => new Error(message)),
    );
    fc.assert(
      fc.property(thrown, (value) => {
        const { note, detail } = describeFailure(value);
        expect(note.length).toBeGreaterThan(0);
        expect(note.length).toBeLessThanOrEqual(MAX_NOTE_LENGTH);
        expect(unstorableText(note)).toBeNull();
        const text = JSON.stringify(detail);
        expect(text).not.toMatch(/\\u0000|\\ud[89a-f]/);
        expect(text.length).toBeLessThan(60_000);
        expect(JSON.parse(text)).toEqual(detail);
      }),
    );
  });

  it.each([
    ["", "an empty string was thrown"],
    [" \n\t", "a blank string was thrown"],
    [new Error("  "), "Error without a message"],
    [{ name: "  ", message: "\n" }, "Object without a message"],
  ])("is told where it says nothing: %j", (thrown, note) => {
    expect(describeFailure(thrown).note).toBe(note);
    expect(describeFailure(thrown).detail.name.trim()).not.toBe("");
  });

  it("is told where a TaskError is made of nothing", () => {
    expect(describeFailure(TaskError.permanent(" ")).note).toBe("a blank string was thrown");
  });
});
