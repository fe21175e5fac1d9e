import { expect, test } from "vitest";
import type { WorkResult } from "../process/protocol.ts";
import { deliveries } from "./deliveries.ts";

function handled(...ids: number[]): WorkResult {
  const times = new Float64Array(ids.length);
  return {
    startedAt: 0,
    stopAskedAt: 0,
    stoppedAt: 0,
    ids: Int32Array.from(ids),
    times,
    cpuMicros: 0,
  };
}

test("each job once, by several workers", () => {
  expect(deliveries([handled(10, 12), handled(11)], 10, 3)).toEqual({
    jobs: 3,
    doubled: 0,
    lost: 0,
  });
});

test("a job that two workers ran is doubled, one that none ran is lost", () => {
  expect(deliveries([handled(0, 1), handled(1)], 0, 3)).toEqual({ jobs: 2, doubled: 1, lost: 1 });
});

test("jobs of an earlier measurement do not count", () => {
  expect(deliveries([handled(1, 2, 3)], 2, 2)).toEqual({ jobs: 2, doubled: 0, lost: 0 });
});
