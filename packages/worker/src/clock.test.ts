import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { settledWithin, systemClock } from "./clock.ts";
import { deferred } from "./testing/signals.ts";

describe("the system's clock", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a delay beyond what setTimeout can count is waited out, not fired at once", () => {
    const days60 = 60 * 86_400_000;
    const fired = vi.fn();
    systemClock.after(days60, fired);
    vi.advanceTimersByTime(days60 - 1);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledOnce();
  });

  test("does not follow the wall clock, which may jump either way", () => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ["Date"] });
    const before = systemClock.now();
    for (const jump of [-3_600_000, 7_200_000]) {
      vi.setSystemTime(Date.now() + jump);
      expect(systemClock.now() - before).toBeGreaterThanOrEqual(0);
      expect(systemClock.now() - before).toBeLessThan(60_000);
    }
  });

  test("an infinite delay sets no timer", () => {
    systemClock.after(Number.POSITIVE_INFINITY, () => undefined);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a cancelled timer does not fire, also in a later stretch of a long delay", () => {
    const fired = vi.fn();
    const cancel = systemClock.after(2 ** 33, fired);
    vi.advanceTimersByTime(2 ** 32);
    cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(fired).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("waiting for a promise, but not for ever", () => {
  test("says that it settled, and leaves no timer behind", async () => {
    vi.useFakeTimers();
    const settled = settledWithin(systemClock, 60_000, Promise.resolve());
    await expect(settled).resolves.toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test("a rejection has settled", async () => {
    const rejected = Promise.reject(new Error("no"));
    await expect(settledWithin(systemClock, 1_000, rejected)).resolves.toBe(true);
  });

  test("says that it did not settle in time", async () => {
    await expect(settledWithin(systemClock, 5, deferred().promise)).resolves.toBe(false);
  });
});
