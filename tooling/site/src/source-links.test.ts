import { expect, test } from "vitest";
import { anchorsOf, relink, titleOf } from "./markdown.ts";
import { brokenLinks } from "./source-links.ts";

const other = "# Other\n\n## run, runOnce, stop\n\n## Twice\n\n## Twice\n";
const pages = new Map([["docs/other.md", other]]);
const broken = (text: string) => brokenLinks("docs/page.md", text, pages, () => false);

test("a link to a page and to a heading of it holds", () => {
  expect(
    broken("[a](other.md) and [b](other.md#run-runonce-stop) and [c](../docs/other.md)"),
  ).toEqual([]);
});

test("a link to no file, and one to no heading, are told with their lines", () => {
  expect(broken("\n[a](absent.md)\n[b](other.md#absent)")).toEqual([
    "docs/page.md:2: absent.md leads to no file (docs/absent.md)",
    "docs/page.md:3: other.md#absent leads to no heading of docs/other.md",
  ]);
});

test("the README of a package leads to what is published with it, and to other hosts, alone", () => {
  const text = [
    "# A\n[a](#a) [b](https://example.com) [c](package.json)",
    "[d](../../docs/other.md)",
    "[e](src/index.ts)",
  ].join("\n");
  const file = "packages/a/README.md";
  expect(brokenLinks(file, text, new Map([...pages, [file, text]]), () => true)).toEqual(
    [
      [3, "../../docs/other.md"],
      [4, "src/index.ts"],
    ].map(
      ([line, target]) =>
        `${file}:${line}: ${target} is not in the published package: name the document, or link to https`,
    ),
  );
});

test("links in code, and those to other hosts, are nobody's business", () => {
  expect(broken("`[a](absent.md)` [b](https://example.com)\n```md\n[c](absent.md)\n```\n")).toEqual(
    [],
  );
});

test("headings of one text get numbered anchors", () => {
  expect([...anchorsOf(other)]).toEqual(["other", "run-runonce-stop", "twice", "twice-1"]);
});

test("the title of a page is its first heading, without marks", () => {
  expect(titleOf("```sh\n# no title\n```\n# The `pg` driver\n")).toBe("The pg driver");
});

test("a link that has no place on the site becomes its text", () => {
  const replace = (target: string) => (target === "b.md" ? "/b" : undefined);
  expect(relink("[a](a.md), [b](b.md), [c](https://c.example)", replace)).toBe(
    "a, [b](/b), [c](https://c.example)",
  );
});
