import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runCommand } from "./command.ts";
import { FAILURES_FILE } from "./failures-reporter.ts";
import { reporterFile, vitestProgram } from "./vitest-gate.ts";

const folder = await mkdtemp(join(tmpdir(), "venturi-failures-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

const files = {
  "vitest.config.mjs": "export default { test: { globals: true } };",
  "fails.test.mjs": `
    test("adds up", () => expect({ sum: 1 }).toEqual({ sum: 2 }));
    test("is quiet", () => undefined);
    test("has a cause", () => { throw new Error("went wrong", { cause: new Error("no such host") }); });
    test("is long", () => { throw new Error(Array.from({ length: 99 }, (_, i) => "line " + i).join("\\n")); });
    test.skip("is skipped", () => undefined);
    test.todo("is unwritten");
    describe("a group", () => {
      beforeAll(() => { throw new Error("the hook broke"); });
      test("never began", () => undefined);
    });
    test("leaves something behind", () => new Promise((resolve) => {
      Promise.reject(new Error("a stray rejection"));
      setTimeout(resolve, 10);
    }));`,
  "does-not-load.test.mjs": `throw new Error("no such module");`,
  "ends-badly.test.mjs": `
    afterAll(() => { throw new Error("the last hook broke"); });
    test("is good", () => undefined);`,
};
for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
const found = await failures();

test("a failed test is named with its file, its error and the difference", () => {
  expect(found).toMatch(/^FAIL fails.test.mjs > adds up\n {4}AssertionError: expected/m);
  expect(found).toContain('+   "sum": 1');
});

test("causes are shown, long errors are cut", () => {
  expect(found).toMatch(/went wrong\n[\s\S]*?caused by\n {4}Error: no such host/);
  expect(found).toContain("line 24");
  expect(found).not.toContain("line 25");
  expect(found).toMatch(/^ {4}\(\d+ more lines\)$/m);
});

test("skipped and unwritten tests are named", () => {
  expect(found).toContain("SKIP fails.test.mjs > is skipped");
  expect(found).toContain("TODO fails.test.mjs > is unwritten");
});

test("errors of hooks, of files and outside of tests are named", () => {
  expect(found).toContain("FAIL fails.test.mjs > a group\n    Error: the hook broke");
  expect(found).toContain("SKIP fails.test.mjs > a group > never began");
  expect(found).toContain("FAIL does-not-load.test.mjs\n    Error: no such module");
  expect(found).toContain("FAIL ends-badly.test.mjs\n    Error: the last hook broke");
  expect(found).toContain("ERROR outside of tests\n    Error: a stray rejection");
});

test("what passed is left out", () => {
  expect(found).not.toMatch(/is quiet|is good/);
});

async function failures(): Promise<string> {
  const file = join(folder, "failures.txt");
  await runCommand({
    program: process.execPath,
    args: [vitestProgram, "run", `--reporter=${reporterFile}`],
    cwd: folder,
    env: { [FAILURES_FILE]: file },
    timeoutMs: 60_000,
  });
  return readFile(file, "utf8");
}
