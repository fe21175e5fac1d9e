import { describe, expect, it } from "vitest";
import { isConstantMerge, isDecision, Merge, type MergeChanges, toMerge } from "./merge.ts";

describe("a merge decision", () => {
  it("is one of four", () => {
    expect(Merge.keep()).toMatchObject({ decision: "keep" });
    expect(Merge.replace()).toMatchObject({ decision: "replace" });
    expect(Merge.independent()).toMatchObject({ decision: "independent" });
    expect(Merge.with({ n: 1 }, { page: 2 })).toMatchObject({
      decision: "with",
      payload: { n: 1 },
      carry: { page: 2 },
      visibleAt: undefined,
      priority: undefined,
    });
  });

  it("can name the time and the priority", () => {
    expect(Merge.with(1, undefined, { visibleAt: new Date(5), priority: "high" })).toMatchObject({
      carry: undefined,
      visibleAt: new Date(5),
      priority: "high",
    });
  });

  it.each([
    [{ visibleAt: new Date(Number.NaN) }],
    [{ visibleAt: 5 }],
    [{ priority: "urgent" }],
    [{ delay: 5 }],
  ])("refuses bad changes", (changes) => {
    expect(() => Merge.with(1, undefined, changes as MergeChanges)).toThrow(
      expect.objectContaining({ code: "invalid-argument" }),
    );
  });

  it("is recognised by its brand, also from another copy of the package", () => {
    expect([Merge.keep(), Merge.with(1)].every(isDecision)).toBe(true);
    expect(isDecision({ [Symbol.for("venturi.decision")]: true, decision: "keep" })).toBe(true);
    expect(
      [{ decision: "keep" }, "keep", null, undefined, Promise.resolve()].some(isDecision),
    ).toBe(false);
  });
});

describe("the merge of a task", () => {
  it("is a word or a function", () => {
    const decide = () => Merge.keep();
    expect(["keep", "replace", "independent"].every(isConstantMerge)).toBe(true);
    expect(toMerge("keep", "merge")).toBe("keep");
    expect(toMerge(decide, "merge")).toBe(decide);
  });

  it.each([["with"], [""], [null], [Merge.keep()]])("is not anything else", (value) => {
    expect(() => toMerge(value, "merge")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "merge" }),
    );
  });
});
