import { getEventListeners } from "node:events";
import { isVenturiError } from "@venturi/core";
import { expect, test } from "vitest";
import { Shutdown } from "./shutdown.ts";
import { ManualClock } from "./testing/manual-clock.ts";

test("handlers have the shutdown timeout, releasing has 3.5 seconds more, and everything 4.5", async () => {
  const clock = new ManualClock();
  const shutdown = new Shutdown(clock, 1_000);
  expect(shutdown.drainLeftMs()).toBe(1_000);
  await clock.advance(500);
  shutdown.request();
  await clock.advance(400);
  expect(shutdown.drainLeftMs()).toBe(600);
  expect(shutdown.releaseLeftMs()).toBe(4_100);
  expect(shutdown.leftMs()).toBe(5_100);
  await clock.advance(60_000);
  expect(shutdown.drainLeftMs()).toBe(0);
  expect(shutdown.releaseLeftMs()).toBe(0);
  expect(shutdown.leftMs()).toBe(0);
});

test("the first request counts, a second changes nothing", async () => {
  const clock = new ManualClock();
  const shutdown = new Shutdown(clock, 1_000);
  expect(shutdown.isRequested).toBe(false);
  shutdown.request();
  await clock.advance(700);
  shutdown.request();
  expect(shutdown.drainLeftMs()).toBe(300);
  await expect(shutdown.requested).resolves.toBeUndefined();
});

test("an infinite timeout waits for handlers as long as they like", () => {
  const shutdown = new Shutdown(new ManualClock(), Number.POSITIVE_INFINITY);
  shutdown.request();
  expect(shutdown.drainLeftMs()).toBe(Number.POSITIVE_INFINITY);
});

test("the reason is an error named AbortError with the code shutdown", () => {
  const { reason } = new Shutdown(new ManualClock(), 0);
  expect(isVenturiError(reason)).toBe(true);
  expect(reason).toMatchObject({ name: "AbortError", code: "shutdown" });
});

test("it follows a signal with one listener, and takes that away again", () => {
  const controller = new AbortController();
  const shutdown = new Shutdown(new ManualClock(), 0);
  const unfollow = shutdown.follow(controller.signal);
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
  unfollow();
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  controller.abort();
  expect(shutdown.isRequested).toBe(false);
});

test("it follows a signal that has aborted already", () => {
  const shutdown = new Shutdown(new ManualClock(), 0);
  shutdown.follow(AbortSignal.abort());
  expect(shutdown.isRequested).toBe(true);
});
