import { expect, test } from "vitest";
import { documentBlocks } from "./document-blocks.ts";

const page = (...blocks: string[]) => `# Title\n\n${blocks.join("\n\nprose\n\n")}\n`;
const fenced = (info: string, code: string) => `\`\`\`${info}\n${code}\n\`\`\``;

test("ts blocks are found, others are not", () => {
  const blocks = documentBlocks("a.md", page(fenced("ts", "one();"), fenced("sql", "select 1")));
  expect(blocks.map(({ code }) => code.trim())).toEqual(["one();"]);
});

test("code stands at the lines of the Markdown file", () => {
  const text = page(fenced("ts", "one();"), fenced("ts", "two();"));
  for (const { code } of documentBlocks("a.md", text)) {
    const line = code.split("\n").findIndex((text) => text !== "");
    expect(text.split("\n")[line]).toBe(code.trim());
  }
});

test("a block marked run is to be run", () => {
  const blocks = documentBlocks("a.md", page(fenced("ts run", "one();"), fenced("ts", "two();")));
  expect(blocks.map(({ runs }) => runs)).toEqual([true, false]);
});

test("a block marked continue goes on with the module before it", () => {
  const text = page(fenced("ts run", "one();"), fenced("ts continue", "two();"));
  const [block, ...others] = documentBlocks("a.md", text);
  expect(others).toEqual([]);
  expect(block).toMatchObject({ runs: true, line: 4 });
  const lines = text.split("\n");
  expect(block?.code.split("\n").indexOf("one();")).toBe(lines.indexOf("one();"));
  expect(block?.code.split("\n").indexOf("two();")).toBe(lines.indexOf("two();"));
});

test("a block marked file is no block: its page prints a project", () => {
  expect(documentBlocks("a.md", page(fenced("ts file", "one();")))).toEqual([]);
});

test("a mark that nobody knows is an error", () => {
  expect(() => documentBlocks("a.md", page(fenced("ts rum", "one();")))).toThrow("a.md:3");
});
