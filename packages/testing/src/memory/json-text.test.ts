import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toStoredJson } from "./json-text.ts";

describe("JSON as jsonb gives it back", () => {
  it("orders names by length, then by bytes, and keeps the last of two alike", () => {
    expect(toStoredJson('{"b":1,"aa":2,"a":{"ä":1,"z":2,"y":3},"b":4}')).toBe(
      '{"a":{"y":3,"z":2,"ä":1},"b":4,"aa":2}',
    );
  });

  it("has no names that mean something to JavaScript", () => {
    expect(toStoredJson('{"__proto__":{"x":1}}')).toBe('{"__proto__":{"x":1}}');
  });

  it("changes no value, and nothing when it is done again", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const stored = toStoredJson(text);
        expect(JSON.parse(stored)).toEqual(JSON.parse(JSON.stringify(JSON.parse(text))));
        expect(toStoredJson(stored)).toBe(stored);
      }),
    );
  });
});
