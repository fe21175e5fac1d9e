import { expect, test } from "vitest";
import { asCommonJs, importedPackages } from "./consumer-sources.ts";

const code = `import pg from "pg";
import {
  defineTask,
  Outcome,
} from "@venturi/core";
import { readFile } from "node:fs/promises";
import { postgresJs } from "@venturi/queue/adapters";

await readFile("x");
`;

test("a CommonJS file keeps its imports outside and awaits inside a function", () => {
  const text = asCommonJs(code);
  expect(text.indexOf('from "@venturi/core"')).toBeLessThan(text.indexOf("async function main"));
  expect(text.indexOf("await readFile")).toBeGreaterThan(text.indexOf("async function main"));
});

test("the packages that code imports are named once, without paths and without Node's own", () => {
  expect(importedPackages(code)).toEqual(["pg", "@venturi/core", "@venturi/queue"]);
});
