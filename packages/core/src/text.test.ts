import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanText, fitsCharacters, shortHash, unstorableText } from "./text.ts";

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
);

describe("text that PostgreSQL refuses", () => {
  it.each([
    ["a\u0000b", "contains U+0000"],
    ["\ud83d", "contains half of a surrogate pair"],
    ["\ude00x", "contains half of a surrogate pair"],
    ["😀", null],
    ["\u0001\u001f\u007f\u2028", null],
    ["\\u0000", null],
    ["", null],
  ])("%j: %s", (text, problem) => {
    expect(unstorableText(text)).toBe(problem);
  });

  it("is replaced by U+FFFD, character by character", () => {
    expect(cleanText("a\u0000b\ud83dc😀", 100)).toBe("a\ufffdb\ufffdc😀");
  });

  it("is gone after cleaning, and what is left is as short as asked for", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 50 }), (text, limit) => {
        const clean = cleanText(text, limit);
        expect(unstorableText(clean)).toBeNull();
        expect(clean.length).toBeLessThanOrEqual(limit);
        if (text.length <= limit && unstorableText(text) === null) expect(clean).toBe(text);
      }),
    );
  });

  it("does not come from cutting a pair in two", () => {
    expect(cleanText("abc😀", 4)).toBe("abc…");
    expect(unstorableText(cleanText("ab😀😀", 4))).toBeNull();
  });
});

describe("characters", () => {
  it("are code points, as PostgreSQL counts them", () => {
    fc.assert(
      fc.property(anyText, fc.nat(60), (text, limit) => {
        expect(fitsCharacters(text, limit)).toBe([...text].length <= limit);
      }),
    );
  });
});

describe("a short hash", () => {
  it.each([
    ["", "ztntfp"],
    ["a", "1r9wi7g"],
    ["public", "1krc8zk"],
  ])("of %j is %s", (text, hash) => {
    expect(shortHash(text)).toBe(hash);
  });

  it("is of letters and digits, at most seven", () => {
    fc.assert(fc.property(anyText, (text) => /^[0-9a-z]{1,7}$/.test(shortHash(text))));
  });
});
