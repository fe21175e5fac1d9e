import fc from "fast-check";
import { expect, it } from "vitest";
import { pathToText, textToPath } from "./path-text.ts";

it("keeps ordinary names legible", () => {
  expect(pathToText(Buffer.from("src/größe 1.ts"))).toBe("src/größe 1.ts");
  expect(pathToText(Buffer.from("100%\n"))).toBe("100%25%0A");
  expect(pathToText(Buffer.from([0x61, 0xff, 0x2f, 0x62]))).toBe("a%FF/b");
});

it("gives back the very bytes of any name", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const path = Buffer.from(bytes);
      const text = pathToText(path);
      expect(textToPath(text).equals(path)).toBe(true);
      expect(textToPath(JSON.parse(JSON.stringify(text)) as string).equals(path)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it("gives different names different texts", () => {
  const encodedSurrogate = Buffer.from([0xed, 0xa0, 0x80]);
  const texts = [
    Buffer.from("a%FF"),
    Buffer.from([0x61, 0xff]),
    Buffer.from("a%25FF"),
    encodedSurrogate,
    Buffer.from("\ufffd"),
  ].map(pathToText);
  expect(new Set(texts).size).toBe(texts.length);
});
