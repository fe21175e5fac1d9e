import { expect, test } from "vitest";
import { ClaimAhead } from "./claim-ahead.ts";

/** Handlers that run one after the other, `slots` at once, for `forMs`. */
function work(ahead: ClaimAhead, { tookMs = 1, slots = 4, forMs = 100, from = 0 }): number {
  for (let now = from; now < from + forMs; now += tookMs) {
    ahead.busy(now);
    for (let slot = 0; slot < slots; slot += 1) ahead.ended(tookMs, now + tookMs);
  }
  return from + forMs;
}

test("nothing is claimed ahead before anything is known", () => {
  expect(new ClaimAhead("auto", 4).target).toBe(0);
});

test("auto follows the work: as many as end in 25 ms", () => {
  const ahead = new ClaimAhead("auto", 4);
  const now = work(ahead, { tookMs: 1 });
  expect(ahead.target).toBe(100);
  work(ahead, { tookMs: 2, from: now });
  expect(ahead.target).toBe(50);
});

test("auto knows after two rounds of its slots, so that a worker need not warm up", () => {
  const ahead = new ClaimAhead("auto", 4);
  const now = work(ahead, { forMs: 1 });
  expect(ahead.target).toBe(0);
  work(ahead, { forMs: 1, from: now });
  expect(ahead.target).toBe(100);
});

test("the time in which no handler runs does not count", () => {
  const ahead = new ClaimAhead("auto", 4);
  for (let now = 0; now < 10_000; now += 100) {
    work(ahead, { forMs: 2, from: now });
    ahead.idle(now + 2);
    // As after a claim that brought nothing that was started.
    ahead.idle(now + 90);
  }
  expect(ahead.target).toBe(100);
});

test("auto claims nothing ahead where handlers are long, also where all end at once", () => {
  const ahead = new ClaimAhead("auto", 100);
  work(ahead, { tookMs: 1_000, slots: 100, forMs: 5_000 });
  expect(ahead.target).toBe(0);
});

test("auto claims nothing ahead where many long handlers end just after it has decided", () => {
  const ahead = new ClaimAhead("auto", 4);
  ahead.busy(0);
  for (let n = 0; n < 8; n += 1) ahead.ended(100, 5);
  expect(ahead.target).toBe(0);
});

test("auto starts over once what was claimed ahead had to wait", () => {
  const ahead = new ClaimAhead("auto", 4);
  ahead.idle(work(ahead, {}));
  ahead.stalled();
  expect(ahead.target).toBe(0);
  // What was observed before does not count any more.
  ahead.busy(1_000);
  for (let n = 0; n < 7; n += 1) ahead.ended(1, 1_001);
  ahead.stalled();
  ahead.ended(1, 1_002);
  expect(ahead.target).toBe(0);
});

/** So many handlers that have been running for this long. */
const runningFor = (now: number, count: number, ms: number) => (instant: number) =>
  now - ms <= instant ? count : 0;

test("auto claims nothing ahead while long handlers hold half of the slots, however short the others are", () => {
  const ahead = new ClaimAhead("auto", 4);
  const now = work(ahead, { slots: 2 });
  expect(ahead.targetNow(now, runningFor(now, 1, 30_000))).toBe(50);
  expect(ahead.targetNow(now, runningFor(now, 2, 200))).toBe(50);
  expect(ahead.targetNow(now, runningFor(now, 2, 250))).toBe(0);
  expect(ahead.targetNow(now, runningFor(now, 2, 30_000))).toBe(0);
});

test("a long handler is remembered for as long as it took, shared among the slots", () => {
  const ahead = new ClaimAhead("auto", 4);
  ahead.busy(0);
  ahead.ended(8_000, 8_000);
  const now = work(ahead, { from: 8_000 });
  expect(ahead.target).toBe(100);
  expect(ahead.targetNow(now, () => 0)).toBe(0);
  expect(ahead.targetNow(9_999, () => 0)).toBe(0);
  expect(ahead.targetNow(10_000, () => 0)).toBe(100);
});

test("several long handlers are remembered one after the other, for a minute at most", () => {
  const ahead = new ClaimAhead("auto", 4);
  ahead.busy(0);
  for (let count = 0; count < 2; count += 1) ahead.ended(8_000, 8_000);
  work(ahead, { from: 8_000 });
  expect(ahead.targetNow(11_999, () => 0)).toBe(0);
  expect(ahead.targetNow(12_000, () => 0)).toBe(100);
  ahead.ended(3_600_000, 20_000);
  const now = work(ahead, { from: 20_000 });
  expect(ahead.targetNow(now, () => 0)).toBe(0);
  expect(ahead.targetNow(80_000, () => 0)).toBe(100);
});

test("a number stays what it is", () => {
  const ahead = new ClaimAhead(7, 4);
  expect(ahead.target).toBe(7);
  work(ahead, {});
  expect(ahead.target).toBe(7);
  expect(ahead.targetNow(100, runningFor(100, 4, 30_000))).toBe(7);
});

test("a number is claimed ahead again once a handler has ended", () => {
  const ahead = new ClaimAhead(7, 4);
  ahead.stalled();
  expect(ahead.target).toBe(0);
  ahead.idle(10);
  expect(ahead.target).toBe(0);
  ahead.ended(5, 20);
  expect(ahead.target).toBe(7);
});
