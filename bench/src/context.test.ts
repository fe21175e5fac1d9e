import { expect, test } from "vitest";
import { BenchContext } from "./context.ts";
import { sizes } from "./sizes.ts";

test("a problem is logged with its stack, and kept for the report without the folders that it names", () => {
  const logged: string[] = [];
  const context = new BenchContext({
    serverUrl: "",
    redisUrl: null,
    node: "node",
    sizes: sizes.toy,
    log: (line) => logged.push(line),
  });
  context.problem("drain, a system: Error: no connection\n    at work (/somewhere/file.ts:1:1)");
  expect(context.problems).toEqual(["drain, a system: Error: no connection"]);
  expect(logged.join()).toContain("/somewhere/file.ts");
});
