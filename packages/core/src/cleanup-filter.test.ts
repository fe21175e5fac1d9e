import { describe, expect, it } from "vitest";
import { type CleanupFilter, resolveCleanupFilter } from "./cleanup-filter.ts";

const finishedBefore = new Date(1_000);

describe("a cleanup filter", () => {
  it("stands for every ended job of every kind unless it says otherwise", () => {
    expect(resolveCleanupFilter({ finishedBefore })).toEqual({
      finishedBefore,
      kind: null,
      statuses: ["completed", "dead", "cancelled"],
      signal: undefined,
    });
  });

  it("takes a kind, one status or several, and any kind of moment", () => {
    const { signal } = new AbortController();
    const moment = { epochMilliseconds: 1_000 };
    expect(
      resolveCleanupFilter({ finishedBefore: moment, kind: "k", status: "dead", signal }),
    ).toEqual({ finishedBefore, kind: "k", statuses: ["dead"], signal });
    const status = ["dead", "completed", "dead"] as const;
    expect(resolveCleanupFilter({ finishedBefore, status }).statuses).toEqual([
      "dead",
      "completed",
    ]);
    expect(resolveCleanupFilter({ finishedBefore, status: [] }).statuses).toEqual([]);
  });

  it.each([
    ["finishedBefore", {}],
    ["finishedBefore", { finishedBefore: 5 }],
    ["finishedBefore", { finishedBefore: new Date(Number.NaN) }],
    ["kind", { finishedBefore, kind: "" }],
    ["kind", { finishedBefore, kind: ["k"] }],
    ["status", { finishedBefore, status: "pending" }],
    ["status", { finishedBefore, status: ["dead", "claimed"] }],
    ["status", { finishedBefore, status: null }],
    ["signal", { finishedBefore, signal: {} }],
    ["olderThan", { finishedBefore, olderThan: "1d" }],
    ["filter", null],
    ["filter", [finishedBefore]],
    ["filter", undefined],
  ])("with a bad %s is invalid-argument: %j", (member, filter) => {
    expect(() => resolveCleanupFilter(filter as CleanupFilter)).toThrow(
      expect.objectContaining({
        code: "invalid-argument",
        message: expect.stringContaining(member),
      }),
    );
  });
});
