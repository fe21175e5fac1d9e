import { expect, test } from "vitest";
import { abandoned } from "./figures.ts";
import { table, totalsOf } from "./report.ts";

const figures = { ...abandoned("first", 1, "gone"), enqueued: 7, lost: 1, stuck: 2, exits: 1 };

test("totals are sums over all scenarios, and jobs that have not ended count as lost", () => {
  expect(totalsOf([figures, figures])).toMatchObject({ enqueued: 14, lost: 6, exits: 2 });
});

test("a scenario that could not be run to its end is broken, and says why", () => {
  expect(abandoned("second", 1, new Error("no server")).violations).toEqual([
    expect.stringContaining("no server"),
  ]);
  expect(table([abandoned("second", 1, "gone")])).toContain("BROKEN");
});
