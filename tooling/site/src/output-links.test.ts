import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { outputProblems } from "./output-links.ts";

const folder = mkdtempSync(join(tmpdir(), "venturi-site-"));

afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(folder, file, ".."), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
}

test("links of the finished site lead somewhere, and nothing comes from another host", () => {
  write({
    "index.html": [
      '<a href="/learning/a.html#there">holds</a> <a href="/learning/">holds</a>',
      '<a href="https://example.com">prose may link anywhere</a>',
      '<a href="/learning/a.html#absent">no such heading</a>',
      '<a href="learning/absent.html">no such page</a>',
      '<script src="https://example.com/x.js"></script>',
    ].join("\n"),
    "learning/index.html": '<a href="../index.html">holds</a>',
    "learning/a.html": '<h2 id="there"></h2><a href="#there">holds</a>',
    "assets/style.css":
      "@font-face { src: url(//example.com/font.woff2) } a { background: url(/mark.svg) }",
  });
  expect(outputProblems(folder)).toEqual([
    "assets/style.css: loads //example.com/font.woff2",
    "index.html: loads https://example.com/x.js",
    "index.html: /learning/a.html#absent leads nowhere",
    "index.html: learning/absent.html leads nowhere",
  ]);
});
