import { describe, expect, it } from "vitest";
import { VenturiError } from "./errors.ts";
import { copyAsJson } from "./json-copy.ts";

/** A copy of a value that may have so many parts and be so deep. */
function copy(value: unknown, maxParts: number, maxDepth = 10): unknown {
  const problem = (path: string, what: string) => new VenturiError("serialization", path + what);
  return copyAsJson(value, { root: "payload", maxDepth, maxParts, problem });
}

const date = new Date(0);

describe("the parts of a value", () => {
  it.each<[string, number, unknown]>([
    ["a scalar", 1, 5],
    ["a text of 15 characters", 1, "x".repeat(15)],
    ["one of 16", 2, "x".repeat(16)],
    ["one of 40", 3, "x".repeat(40)],
    ["what toJSON returns", 2, date],
    ["an array and its elements", 4, [1, null, true]],
    ["one with holes", 4, new Array(3)],
    ["one in another", 5, [[1, 2], 3]],
    ["an object and its members", 3, { a: 1, b: 2 }],
    ["one with undefined members", 3, { a: undefined, b: 2 }],
    ["one that is shared, each time", 5, (([shared]) => [shared, shared])([{ a: 1 }])],
  ])("are counted once: %s", (_, parts, value) => {
    expect(() => copy(value, parts)).not.toThrow();
    expect(() => copy(value, parts - 1)).toThrow(`exceed ${parts - 1} parts`);
  });
});

it("may be as deep as is allowed, and no deeper", () => {
  expect(copy([[[1]]], 10, 3)).toEqual([[[1]]]);
  expect(() => copy([[[[1]]]], 10, 3)).toThrow("payload[0][0][0]is more than 3 levels deep");
});
