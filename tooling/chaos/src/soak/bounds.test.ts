import { expect, test } from "vitest";
import { growth } from "./bounds.ts";
import type { Reading } from "./probe.ts";

const reading = (changes: Partial<Reading> = {}): Reading => ({
  at: 0,
  heapUsed: { worker: 20e6 },
  rss: { worker: 80e6 },
  connections: 10,
  claimMs: 1,
  claimBuffers: 40,
  backlog: 10,
  tableBytes: 30e6,
  ...changes,
});

const lasting = (end: Partial<Reading>) => [
  ...Array.from({ length: 5 }, () => reading()),
  ...Array.from({ length: 3 }, () => reading(end)),
];

test("what stays level is no growth", () => {
  expect(growth(lasting({ heapUsed: { worker: 21e6 }, connections: 11 }))).toEqual([]);
});

test.each<[string, Partial<Reading>]>([
  ["heapUsed of worker", { heapUsed: { worker: 23e6 } }],
  ["rss of worker", { rss: { worker: 110e6 } }],
  ["connections", { connections: 13 }],
  ["pages touched by a claim", { claimBuffers: 60 }],
  ["milliseconds of a claim", { claimMs: 2 }],
  ["tables", { tableBytes: 60e6 }],
  ["backlog", { backlog: 500 }],
])("growth is told by what grew: %s", (what, end) => {
  expect(growth(lasting(end))).toEqual([expect.stringContaining(what)]);
});
