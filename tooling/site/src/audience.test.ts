import { expect, test } from "vitest";
import { namesForRuntimes, runtimeNamesOf, splitOverview } from "./audience.ts";

const source = `export { Task } from "./task.ts";
// ══ for runtimes ══
export { A_B, type Port, plan } from "./ports.ts";
export type { Names } from "./names.ts";
`;

test("the names below the line are those that applications do not need", () => {
  expect([...namesForRuntimes(source)]).toEqual(["A_B", "Port", "plan", "Names"]);
  expect([...namesForRuntimes('export { Task } from "./task.ts";\n')]).toEqual([]);
});

test("an overview has them in a part of its own, and no empty sections", () => {
  const overview = `# a

## Types

| Type | Description |
| --- | --- |
| [Task](task.md) | one |
| [Port](port.md) | two |

## Functions

| Function | Description |
| --- | --- |
| [plan](plan.md) | three |
| [A\\_B](A_B.md) | four |
`;
  const split = splitOverview(overview, namesForRuntimes(source));
  expect(split.match(/^#+ .*|^\| \[[\w\\]+\]/gm)).toEqual([
    ...["# a", "## Types", "| [Task]"],
    ...[
      "## For stores and runtimes",
      "### Types",
      "| [Port]",
      "### Functions",
      "| [plan]",
      "| [A\\_B]",
    ],
  ]);
  expect([...runtimeNamesOf(split)]).toEqual(["Port", "plan", "A_B"]);
  expect(splitOverview(overview, new Set())).toBe(overview);
});
