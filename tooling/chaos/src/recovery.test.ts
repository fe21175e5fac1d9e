import { expect, test } from "vitest";
import { median, shrinkingSince, windowRates } from "./recovery.ts";

const samples = (...backlogs: number[]) =>
  backlogs.map((backlog, index) => ({ at: 100 * index, backlog }));

test("recovery ends when the backlog is at its greatest", () => {
  expect(shrinkingSince(samples(5, 7, 9, 8, 6), 100, 1_000)).toBe(100);
});

test("a backlog that shrinks from the start has nothing to recover from", () => {
  expect(shrinkingSince(samples(9, 8, 6, 4), 50, 1_000)).toBe(0);
});

test("a backlog that never shrinks has not recovered", () => {
  expect(shrinkingSince(samples(5, 7, 9), 0, 1_000)).toBeNull();
  expect(shrinkingSince([], 0, 1_000)).toBeNull();
});

test("what happens after the time that is looked at does not count", () => {
  expect(shrinkingSince(samples(5, 7, 9, 8), 0, 200)).toBeNull();
});

test("a rate is the median of its windows", () => {
  const instants = [0, 1, 2, 10, 11, 20, 21, 22, 23, 99];
  const rates = windowRates(instants, 0, { windows: 3, windowMs: 10 });
  expect(rates).toEqual([300, 200, 400]);
  expect(median(rates)).toBe(300);
});
