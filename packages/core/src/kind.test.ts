import { describe, expect, it } from "vitest";
import { isKind, toKind } from "./kind.ts";

describe("a kind", () => {
  it.each(["a", "send_email", "Sync contacts / v2", "送信", "x".repeat(200), "😀".repeat(200)])(
    "may be %s",
    (kind) => {
      expect(isKind(kind)).toBe(true);
      expect(toKind(kind, "kind")).toBe(kind);
    },
  );

  it.each([
    ["empty", ""],
    ["of more than 200 characters", "x".repeat(201)],
    ["with a line break", "a\nb"],
    ["with U+0000", "a\u0000"],
    ["with a control character of the upper range", "a\u0085"],
    ["with a lone surrogate", "a\ud800"],
    ["a number", 5],
    ["undefined", undefined],
  ])("is not %s", (_, kind) => {
    expect(isKind(kind)).toBe(false);
    expect(() => toKind(kind as string, "kind")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "kind" }),
    );
  });
});
