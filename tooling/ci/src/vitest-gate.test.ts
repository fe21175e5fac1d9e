import { expect, test } from "vitest";
import { countTests, type VitestReport } from "./vitest-gate.ts";

const report: VitestReport = {
  success: true,
  numPassedTests: 5,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
};

test("passed and failed tests are counted", () => {
  const counted = countTests({ ...report, success: false, numFailedTests: 2 }, false, "");
  expect(counted).toMatchObject({ passed: 5, failed: 2 });
});

test("skipped and unwritten tests count as failed", () => {
  const counted = countTests({ ...report, numPendingTests: 1, numTodoTests: 1 }, true, "");
  expect(counted).toMatchObject({ passed: 5, failed: 2 });
});

test("a bad end without a failed test is one failure", () => {
  expect(countTests(report, false, "")).toMatchObject({ passed: 5, failed: 1 });
  expect(countTests({ ...report, success: false }, true, "")).toMatchObject({ failed: 1 });
});

test("a run without a report is one failure", () => {
  expect(countTests(undefined, true, "")).toMatchObject({ passed: 0, failed: 1 });
});
