import { VenturiError } from "@venturi/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { repeatConflicts } from "./repeat.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function failure(sqlState: string): VenturiError {
  return new VenturiError("database", "failed", { sqlState });
}

/** Rejects with each of the errors in turn, then resolves. */
function failing(...errors: unknown[]) {
  return vi.fn(async () => {
    if (errors.length > 0) throw errors.shift();
    return "done";
  });
}

it("repeats serialization failures and deadlocks until they pass", async () => {
  const statement = failing(failure("40001"), failure("40P01"), failure("40001"));
  const result = repeatConflicts(statement);
  await vi.runAllTimersAsync();
  await expect(result).resolves.toBe("done");
  expect(statement).toHaveBeenCalledTimes(4);
});

it("passes the conflict on after ten seconds", async () => {
  const conflict = failure("40P01");
  const statement = vi.fn(() => Promise.reject(conflict));
  const startedAt = performance.now();
  const result = expect(repeatConflicts(statement)).rejects.toBe(conflict);
  await vi.runAllTimersAsync();
  await result;
  expect(performance.now() - startedAt).toBeLessThanOrEqual(10_000);
  expect(statement.mock.calls.length).toBeLessThan(40);
});

it("tries three times at least, however long an attempt has waited", async () => {
  const statement = vi.fn(async () => {
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    throw failure("40P01");
  });
  const result = expect(repeatConflicts(statement)).rejects.toThrow("failed");
  await vi.runAllTimersAsync();
  await result;
  expect(statement).toHaveBeenCalledTimes(3);
});

it.each(["53300", "57P01", "23505"])("does not repeat %s", async (sqlState) => {
  const error = failure(sqlState);
  const statement = failing(error);
  await expect(repeatConflicts(statement)).rejects.toBe(error);
  expect(statement).toHaveBeenCalledTimes(1);
});

it("names the conflict, not the transaction that it ended", async () => {
  const conflict = failure("40001");
  const result = expect(repeatConflicts(failing(conflict, failure("25P02")))).rejects.toBe(
    conflict,
  );
  await vi.runAllTimersAsync();
  await result;
});

it("delays grow to a second, or to what the caller says, and count from when it says", async () => {
  vi.spyOn(Math, "random").mockReturnValue(1);
  const attempts: number[] = [];
  const statement = vi.fn(() => {
    attempts.push(performance.now());
    return Promise.reject(failure("40P01"));
  });
  const startedAt = performance.now() - 9_500;
  const result = expect(
    repeatConflicts(statement, { startedAt, maxDelayMs: 40 }),
  ).rejects.toThrow();
  await vi.runAllTimersAsync();
  await result;
  const delays = attempts.slice(1).map((at, index) => at - (attempts[index] ?? 0));
  expect(delays.slice(0, 5)).toEqual([5, 10, 20, 40, 40]);
  expect(performance.now() - startedAt).toBeLessThanOrEqual(10_000);
});
