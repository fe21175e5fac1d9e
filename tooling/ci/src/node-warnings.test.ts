import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { nodeWarnings, strictNode } from "./node-warnings.ts";

function run(program: string) {
  const env = { ...process.env, NODE_OPTIONS: strictNode };
  const { status, stderr } = spawnSync(process.execPath, ["-e", program], {
    env,
    encoding: "utf8",
  });
  return { status, warnings: nodeWarnings(`before\n${stderr}after\n`) };
}

test("a warning is found among other output, with its stack", () => {
  const { warnings } = run("process.emitWarning('of this test')");
  expect(warnings).toEqual([expect.stringMatching(/Warning: of this test\n {4}at .*\[eval\]:1/)]);
});

test("deprecations and leaks are warnings, each of them once", () => {
  const deprecate = "process.emitWarning('old', 'DeprecationWarning', 'DEP9999');";
  const leak = "for (let n = 0; n < 12; n += 1) process.on('x', () => undefined);";
  expect(run(deprecate + leak).warnings).toEqual([
    expect.stringContaining("[DEP9999] DeprecationWarning: old"),
    expect.stringContaining("MaxListenersExceededWarning: Possible EventEmitter memory leak"),
  ]);
  const { warnings } = run(deprecate);
  expect(nodeWarnings(`${warnings[0]}\n${warnings[0]?.replace(/\d+/, "1")}\n`)).toHaveLength(1);
});

test("a process that prints no warning has none", () => {
  expect(run("console.error('Warning: this is a log line')").warnings).toEqual([]);
});

test("a rejection that nobody handles ends the process", () => {
  expect(run("Promise.reject(new Error('lost')); setTimeout(() => undefined, 1000)").status).toBe(
    1,
  );
});
