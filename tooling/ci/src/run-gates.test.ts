import { expect, test } from "vitest";
import type { Gate, GateResult } from "./gate.ts";
import { runStages } from "./run-gates.ts";

const gate = (name: string, run: () => GateResult): Gate => ({ name, run: async () => run() });
const counts = (passed: number, failed: number) => () => ({ passed, failed, output: "why" });

test("the counts of all gates are added up, also after one failed", async () => {
  const gates = [gate("a", counts(3, 1)), gate("b", counts(1, 0))];
  const totals = await runStages(
    [
      { lanes: 1, gates },
      { lanes: 2, gates },
    ],
    () => undefined,
  );
  expect(totals).toEqual({ passed: 8, failed: 2 });
});

test("a gate that throws, and one that tested nothing, have failed", async () => {
  const throwing = gate("throws", () => {
    throw new Error("no such folder");
  });
  const said: string[] = [];
  const stages = [{ lanes: 1, gates: [throwing, gate("empty", counts(0, 0))] }];
  const totals = await runStages(stages, (line) => said.push(line));
  expect(totals).toEqual({ passed: 0, failed: 2 });
  expect(said.join("\n")).toContain("no such folder");
  expect(said.join("\n")).toContain("nothing was tested");
});

test("what failed is shown with its output, and again at the very end", async () => {
  const said = await saidOf(counts(0, 1));
  expect(said).toContain("     | why");
  expect(said.at(-1)).toMatch(/^\nWhat failed:\nFAIL a: 0 passed, 1 failed .*\n {5}\| why$/);
});

test("a gate that knows what failed has that shown, and not all it printed", async () => {
  const failures = "FAIL a.test.ts > adds up";
  const said = await saidOf(() => ({ passed: 7, failed: 1, output: "seven passed", failures }));
  expect(said.join("\n")).not.toContain("seven passed");
  expect(said.at(-1)).toContain(`     | ${failures}`);
});

test("of a long output the end is shown", async () => {
  const output = Array.from({ length: 100 }, (_, index) => `line ${index}`).join("\n");
  const said = await saidOf(() => ({ passed: 0, failed: 1, output }));
  for (const text of [said.at(-2), said.at(-1)]) {
    expect(text).toContain("(60 lines before these)");
    expect(text).not.toContain("line 59");
    expect(text).toContain("line 60");
    expect(text).toContain("line 99");
  }
});

test("nothing is said of failures when none was seen", async () => {
  expect((await saidOf(counts(1, 0))).join("\n")).not.toContain("failed");
});

async function saidOf(run: () => GateResult): Promise<string[]> {
  const said: string[] = [];
  await runStages([{ lanes: 1, gates: [gate("a", run)] }], (line) => said.push(line));
  return said;
}
