import { describe, expect, it } from "vitest";
import { TextCounter } from "./text-counter.ts";

function count(...chunks: (string | Buffer)[]) {
  const counter = new TextCounter();
  for (const chunk of chunks) counter.update(Buffer.from(chunk as string));
  return { lines: counter.lines, words: counter.words };
}

describe("lines and words as wc counts them in the C locale", () => {
  it.each([
    ["", 0, 0],
    ["one", 0, 1],
    ["one two\nthree\n", 2, 3],
    [" \t\v\f\r\n", 1, 0],
    ["größe 你好x\n", 1, 2],
    ["a\0b \x01 c", 0, 2],
  ])("%j: %i lines, %i words", (text, lines, words) => {
    expect(count(text)).toEqual({ lines, words });
  });

  it("do not depend on where the chunks of a file begin", () => {
    expect(count("on", "e t", "wo", "\n")).toEqual({ lines: 1, words: 2 });
  });

  it("no-break spaces and bytes beyond ASCII part no words", () => {
    expect(count(Buffer.from([0x61, 0xa0, 0x62]))).toEqual({ lines: 0, words: 1 });
  });
});
