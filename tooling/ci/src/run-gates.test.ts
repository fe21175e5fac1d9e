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

test("what failed is shown with its output, and named again at the end", async () => {
  const said: string[] = [];
  await runStages([{ lanes: 1, gates: [gate("a", counts(0, 1))] }], (line) => said.push(line));
  expect(said).toContain("     | why");
  expect(said.at(-1)).toContain("FAIL a");
});
