import { VenturiError } from "@venturi/core";
import { expect, test } from "vitest";
import { isRefusal } from "./refusal.ts";

const answered = (sqlState: string) => new VenturiError("database", "failed", { sqlState });

test.each(["22001", "22P05", "23514", "54000", "P0001", "VT009"])(
  "an answer of SQLSTATE %s is about what was to be written",
  (sqlState) => expect(isRefusal(answered(sqlState))).toBe(true),
);

test.each([
  "08006",
  "25006",
  "26000",
  "28000",
  "28P01",
  "3D000",
  "40001",
  "42501",
  "42P01",
  "53300",
  "57014",
  "57P04",
  "58030",
  "XX000",
])("an answer of SQLSTATE %s is about how things stand", (sqlState) =>
  expect(isRefusal(answered(sqlState))).toBe(false),
);

test("a store may refuse a value itself", () => {
  expect(isRefusal(new VenturiError("serialization", "a cycle"))).toBe(true);
});

test.each([
  new Error("ResourceRequest timed out"),
  new VenturiError("closed", "closed"),
  undefined,
  null,
])("without an answer nothing is refused: %s", (error) => expect(isRefusal(error)).toBe(false));
