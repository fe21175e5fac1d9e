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
