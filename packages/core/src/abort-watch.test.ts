import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { AbortWatch } from "./abort-watch.ts";

it("tells everyone who still watches, through one listener, which it then lets go of", () => {
  const watch = new AbortWatch();
  const controller = new AbortController();
  const told: number[] = [];
  const stops = [1, 2, 3].map((n) => watch.watch(controller.signal, () => told.push(n)));
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
  stops[1]?.();
  controller.abort();
  expect(told).toEqual([1, 3]);
  for (const stop of stops) stop();
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
});

it("leaves no listener behind when nobody watches any more, and can begin again", () => {
  const watch = new AbortWatch();
  const controller = new AbortController();
  const told: string[] = [];
  watch.watch(controller.signal, () => told.push("first"))();
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  watch.watch(controller.signal, () => told.push("second"));
  controller.abort();
  expect(told).toEqual(["second"]);
});

it("tells at once of a signal that has aborted already", () => {
  let told = 0;
  new AbortWatch().watch(AbortSignal.abort(), () => {
    told += 1;
  });
  expect(told).toBe(1);
});
