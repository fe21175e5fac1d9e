import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeDedupKey } from "./dedup-key.ts";

describe("a dedup key", () => {
  it("is text, also of numbers: 1, 1n and '1' are one key", () => {
    expect([1, 1n, "1"].map((key) => encodeDedupKey(key))).toEqual(["1", "1", "1"]);
    expect(encodeDedupKey(-0)).toBe("0");
    expect(encodeDedupKey(-42)).toBe("-42");
    expect(encodeDedupKey(2n ** 53n + 1n)).toBe("9007199254740993");
  });

  it("may be empty, which is a key like any other", () => {
    expect(encodeDedupKey("")).toBe("");
  });

  it("is absent for undefined and null", () => {
    expect(encodeDedupKey(undefined)).toBeNull();
    expect(encodeDedupKey(null)).toBeNull();
  });

  it("has at most 512 characters, counted as the database counts them", () => {
    expect(encodeDedupKey("x".repeat(512))).toHaveLength(512);
    expect(encodeDedupKey("😀".repeat(512))).toHaveLength(1024);
    expect(() => encodeDedupKey("x".repeat(513))).toThrow(/longer than 512 characters/);
    expect(() => encodeDedupKey("😀".repeat(513))).toThrow(/longer than 512 characters/);
    expect(() => encodeDedupKey("x".repeat(12_000))).toThrow(/longer than 512 characters/);
    expect(() => encodeDedupKey(10n ** 600n)).toThrow(/longer than 512 characters/);
  });

  it.each([
    ["U+0000", "a\u0000b"],
    ["a lone high surrogate", "a\ud800"],
    ["a lone low surrogate", "\udc00a"],
    ["an unsafe integer", 2 ** 53],
    ["a fraction", 1.5],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["an object", { id: 1 }],
    ["a Date", new Date()],
    ["true", true],
    ["a symbol", Symbol("key")],
    ["a function", () => "key"],
  ])("is refused: %s", (_, key) => {
    expect(() => encodeDedupKey(key)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "dedupKey" }),
    );
  });

  it("is never shown in the message, its task is", () => {
    const message = (key: unknown) => {
      try {
        encodeDedupKey(key, "send_email");
        return "";
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(message("hunter2\u0000")).toBe(
      'dedupKey of "send_email" contains U+0000: PostgreSQL text cannot hold it, so encode the key',
    );
    expect(message(0.25)).not.toContain("0.25");
  });

  it("is injective on text and on integers", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.maxSafeInteger(), (one, other) => {
        expect(encodeDedupKey(one) === encodeDedupKey(other)).toBe(one === other);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 100 }), (text) => {
        fc.pre(!text.includes("\u0000"));
        expect(encodeDedupKey(text)).toBe(text);
      }),
    );
  });
});
