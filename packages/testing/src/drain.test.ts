import { expect, it } from "vitest";
import { type DrainedRuns, drain } from "./drain.ts";

const none: DrainedRuns = { completed: 0, paused: 0, retried: 0, dead: 0 };

function workerOf(...answers: readonly Partial<DrainedRuns>[]) {
  const left = [...answers];
  return { calls: 0, runOnce: async () => ({ ...none, ...left.shift() }) };
}

it("drain repeats until a call settles nothing, and adds up how the runs ended", async () => {
  const worker = workerOf({ paused: 2, completed: 1 }, { retried: 1 }, { dead: 1, completed: 2 });
  expect(await drain(worker)).toEqual({ completed: 3, paused: 2, retried: 1, dead: 1 });
});

it("drain ends when its signal aborts", async () => {
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await expect(drain(workerOf({ paused: 1 }), { signal })).rejects.toBe(reason);
});
