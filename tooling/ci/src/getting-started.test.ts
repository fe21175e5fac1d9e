import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { importedPackages } from "./consumer-sources.ts";
import { root } from "./paths.ts";
import { printedFiles, printedOutput } from "./printed-files.ts";

const page = readFileSync(join(root, "docs/getting-started.md"), "utf8");
const files = printedFiles(page);

test("every block of TypeScript is a file with its path", () => {
  const sources = files.filter(({ path }) => path.endsWith(".ts"));
  expect(sources).toHaveLength([...page.matchAll(/^```ts/gm)].length);
});

test.each(["jobs", "web", "worker"])("%s installs what it imports", (name) => {
  const manifest = files.find(({ path }) => path === `packages/${name}/package.json`);
  const { dependencies = {} } = JSON.parse(manifest?.text ?? "") as { dependencies?: object };
  const command = new RegExp(`^npm install -w @acme/${name} (.*)$`, "m").exec(page)?.[1] ?? "";
  const installed = [...command.split(" "), ...Object.keys(dependencies)];
  const sources = files.filter(({ path }) => path.startsWith(`packages/${name}/src/`));
  expect(sources.length).toBeGreaterThan(0);
  expect(installed).toEqual(
    expect.arrayContaining(sources.flatMap(({ text }) => importedPackages(text))),
  );
});

test("a path with a star is a file of every package", () => {
  const text =
    "`packages/a/b.json`\n\n```json\n1\n```\n\n`packages/*/c.json`, twice:\n\n```json\n2\n```\n";
  expect(printedFiles(text)).toEqual([
    { path: "packages/a/b.json", text: "1\n" },
    { path: "packages/a/c.json", text: "2\n" },
  ]);
});

test("the output of a command is the block below it", () => {
  expect(printedOutput("```sh\nnode a.js\n```\n\n```\n1\n2\n```\n", "node a.js")).toBe("1\n2\n");
  expect(() => printedOutput("```sh\nnode a.js\n```\n", "node a.js")).toThrow(
    "no output of node a",
  );
});
