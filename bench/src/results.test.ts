import { expect, test } from "vitest";
import { type Results, together } from "./results.ts";
import { sizes } from "./sizes.ts";

function results(cores: number, name: "drain" | "axis"): Results {
  const run = {
    startedAt: name,
    minutes: 1,
    rounds: 3,
    loadBefore: 0,
    source: "abc",
    problems: [],
  };
  return {
    mode: "quick",
    machine: { cpu: "one", cores, memoryGiB: 1, system: "Linux" },
    versions: {},
    server: {},
    sizes: sizes.quick,
    settings: { [name]: {} },
    runs: { [name]: run },
    scenarios: name === "drain" ? { drain: [] } : { axis: { points: [], ceiling: {} } },
  };
}

test("scenarios that were not run again stay", () => {
  const both = together(results(2, "drain"), results(2, "axis"));
  expect(Object.keys(both.runs)).toEqual(["drain", "axis"]);
  expect(Object.keys(both.scenarios)).toEqual(["drain", "axis"]);
});

test("what another machine has found goes", () => {
  expect(together(results(4, "drain"), results(2, "axis"))).toEqual(results(2, "axis"));
});
