import assert from "node:assert";
import { describe, expect, it } from "vitest";
import { MAX_HEADERS_LENGTH, readHeaders, toHeaders } from "./headers.ts";

describe("headers", () => {
  it("are a checked copy, a plain object", () => {
    const given = { traceparent: "00-ab-cd-01", empty: "" };
    const headers = toHeaders(given);
    expect(headers).not.toBe(given);
    assert.deepStrictEqual(headers, given);
  });

  it("are null where there are none", () => {
    expect(toHeaders(undefined)).toBeNull();
    expect(toHeaders({})).toBeNull();
    expect(toHeaders({ "": "" })).not.toBeNull();
  });

  it("may be named as members of Object.prototype are, on the way in and out", () => {
    const given = JSON.parse('{"__proto__":"a","constructor":"b","toString":"c"}');
    const headers = toHeaders(given);
    expect(JSON.stringify(headers)).toBe(JSON.stringify(given));
    const read = readHeaders(JSON.stringify(headers));
    expect(Object.keys(read)).toEqual(["__proto__", "constructor", "toString"]);
    expect(Object.values(read)).toEqual(["a", "b", "c"]);
    assert.deepStrictEqual(read, given);
    expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
  });

  it("are read from text, from an object and from nothing", () => {
    assert.deepStrictEqual(readHeaders('{"a":"b"}'), { a: "b" });
    assert.deepStrictEqual(readHeaders({ a: "b" }), { a: "b" });
    assert.deepStrictEqual(readHeaders(null), {});
  });

  it("take an object of another realm or without a prototype", () => {
    expect(toHeaders(Object.assign(Object.create(null), { a: "b" }))).not.toBeNull();
  });

  it.each([
    ["null", null],
    ["text", "a=b"],
    ["an array", [["a", "b"]]],
    ["a Map", new Map([["a", "b"]])],
    ["an instance of a class", new Date()],
    ["a number as a value", { a: 1 }],
    ["undefined as a value", { a: undefined }],
    ["an object as a value", { a: { b: "c" } }],
    ["U+0000 in a value", { a: "\u0000" }],
    ["U+0000 in a name", { "\u0000": "a" }],
    ["half a surrogate pair", { a: "\ud800" }],
  ])("are not %s", (_, value) => {
    expect(() => toHeaders(value)).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        argument: expect.stringMatching(/^headers/),
      }),
    );
  });

  it("have at most 8,192 characters in all", () => {
    expect(toHeaders({ a: "x".repeat(MAX_HEADERS_LENGTH - 1) })).not.toBeNull();
    expect(() => toHeaders({ a: "x".repeat(MAX_HEADERS_LENGTH) })).toThrow(/more than 8192/);
  });

  it("are never shown in messages", () => {
    expect(() => toHeaders({ token: "hunter2\u0000" })).toThrow(
      'headers["token"] contains U+0000: remove or encode it',
    );
  });
});
