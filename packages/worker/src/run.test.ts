import { abortReason } from "@venturi/core";
import { beforeEach, expect, test } from "vitest";
import { Run } from "./run.ts";

const ended = abortReason("lease-ended", "over", { id: "a" });
const stopped = abortReason("shutdown", "stop");

let run: Run;

beforeEach(() => {
  const job = { id: "a", runCount: 1, leaseMs: 10_000, leaseExpiresAt: new Date(0) };
  run = new Run(job as Run["job"], {} as Run["registration"], 0, 20);
});

test("the first reason to come to an end counts", () => {
  const { signal } = run;
  run.abort(ended);
  run.abort(stopped);
  expect(run.abortReason).toBe(ended);
  expect(signal.reason).toBe(ended);
});

test("a signal that is asked for after its end was told has aborted", () => {
  run.abort(ended);
  expect(run.signal.aborted).toBe(true);
  expect(run.signal.reason).toBe(ended);
});
