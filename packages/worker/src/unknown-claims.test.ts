import { expect, test } from "vitest";
import type { Clock } from "./clock.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { UnknownClaims } from "./unknown-claims.ts";

test("a timer that comes a little early does not lose the second look", async () => {
  const clock = new ManualClock();
  const early: Clock = {
    now: () => clock.now(),
    after: (ms, callback) => clock.after(Math.max(1, ms - 0.5), callback),
    soon: (callback) => clock.soon(callback),
  };
  let due = 0;
  const unknown: UnknownClaims = new UnknownClaims({
    clock: early,
    look: async () => true,
    onLookDue: () => {
      if (unknown.isLookDue) due += 1;
    },
  });
  unknown.claimFailed();
  await unknown.look();
  await clock.advance(14_999);
  expect(due).toBe(0);
  await clock.advance(2);
  expect(due).toBe(1);
});
