import { expect, test } from "vitest";
import { bars, lines } from "./svg.ts";

const bar = { label: "venturi <best> & more", value: 12_345, lowest: 10_000, highest: 15_000 };
const line = { label: "the limit", points: [4, 16, 64].map((x) => ({ x, y: 100 * x })) };

test.each([
  ["bars", bars("jobs/s", [bar])],
  ["lines", lines("jobs/s", "handlers at once", [line])],
])("%s are well-formed", (_, svg) => {
  for (const [tag] of svg.matchAll(/<[a-z][^>]*>/g)) {
    const names = [...tag.matchAll(/ ([\w-]+)="[^"<&]*"/g)].map((match) => match[1]);
    expect(new Set(names).size, tag).toBe(names.length);
    expect(tag, "nothing but attributes").toMatch(/^<[a-z]+( [\w-]+="[^"<&]*")*\/?>$/);
  }
  expect(svg).not.toContain("NaN");
});

test("text is escaped", () => {
  expect(bars("a & b", [bar])).toContain("venturi &lt;best> &amp; more");
});
