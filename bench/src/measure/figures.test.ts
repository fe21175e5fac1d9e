import { expect, test } from "vitest";
import { figure, percentile, ratios } from "./figures.ts";

test("the median of an even number lies between the two in the middle", () => {
  expect(figure([4, 1, 3, 2])).toMatchObject({ median: 2.5, lowest: 1, highest: 4 });
});

test("ratios are taken round by round", () => {
  // The second round was half as fast for both.
  expect(ratios([100, 50], [50, 25])).toMatchObject({ median: 2, lowest: 2, highest: 2 });
});

test("a percentile is a value that was measured", () => {
  const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
  expect([0.5, 0.95, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([50, 95, 99, 100]);
});
