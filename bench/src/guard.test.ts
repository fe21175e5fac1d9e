import { expect, test } from "vitest";
import { type Costs, dearer } from "./guard.ts";

const stored: Costs = {
  walBytesPerJob: 1_000,
  statementsPerJob: 0.02,
  hotShare: 0.99,
  buffersPerClaim: { empty: 900 },
};

test("the stored costs are not too dear", () => {
  expect(dearer(stored, stored)).toEqual([]);
});

test("what has become cheaper is welcome", () => {
  const cheaper = {
    walBytesPerJob: 1,
    statementsPerJob: 0,
    hotShare: 1,
    buffersPerClaim: { empty: 1 },
  };
  expect(dearer(cheaper, stored)).toEqual([]);
});

test.each([
  ["WAL", { ...stored, walBytesPerJob: 1_200 }],
  ["statements", { ...stored, statementsPerJob: 0.06 }],
  ["updates that are not heap-only", { ...stored, hotShare: 0.5 }],
  ["buffers", { ...stored, buffersPerClaim: { empty: 1_000 } }],
  ["a claim that was not measured", { ...stored, buffersPerClaim: {} }],
])("%s: said once", (_, measured) => {
  expect(dearer(measured, stored)).toHaveLength(1);
});
