import { expect, test } from "vitest";
import { GrowingDelay } from "./growing-delay.ts";

test("doubles up to its limit, and starts again after a success", () => {
  const delay = new GrowingDelay({ firstMs: 20, mostMs: 1_000, jitter: false });
  const waits = Array.from({ length: 8 }, () => delay.next());
  expect(waits).toEqual([20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  delay.reset();
  expect(delay.next()).toBe(20);
});

test("jitter shortens a wait by up to a quarter", () => {
  const waitWith = (sample: number) =>
    new GrowingDelay({ firstMs: 100, mostMs: 1_000, jitter: true }, () => sample).next();
  expect(waitWith(0)).toBe(100);
  expect(waitWith(0.5)).toBe(87.5);
  expect(waitWith(0.999_999)).toBeCloseTo(75, 3);
});

test("stays at its limit however often it is asked", () => {
  const delay = new GrowingDelay({ firstMs: 20, mostMs: 1_000, jitter: false });
  for (let i = 0; i < 5_000; i += 1) delay.next();
  expect(delay.next()).toBe(1_000);
});
