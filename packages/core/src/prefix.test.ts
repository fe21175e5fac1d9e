import { describe, expect, it } from "vitest";
import { qualifiedName, quoteIdentifier, resolveNames } from "./prefix.ts";

describe("prefix and schema", () => {
  it('default to "venturi" in "public"', () => {
    expect(resolveNames()).toEqual({ prefix: "venturi", schema: "public" });
    expect(resolveNames({ prefix: undefined, schema: undefined })).toEqual(resolveNames());
  });

  it.each(["venturi", "jobs_v2", "a", "x".repeat(39)])("accepts the prefix %j", (prefix) => {
    expect(resolveNames({ prefix }).prefix).toBe(prefix);
  });

  it.each(["", "Venturi", "jobs-v2", "jobs;drop", "1jobs", "_a", "a\n", "x".repeat(40), "é"])(
    "refuses the prefix %j, naming the option",
    (prefix) => {
      expect(() => resolveNames({ prefix })).toThrow(
        expect.objectContaining({
          code: "invalid-argument",
          message: expect.stringContaining("prefix"),
        }),
      );
    },
  );

  it.each(["My-Schema", 'odd"quote', "é", "x".repeat(63)])("accepts the schema %j", (schema) => {
    expect(resolveNames({ schema }).schema).toBe(schema);
  });

  it.each(["", "a\0b", "\ud800", "x".repeat(64), "é".repeat(32)])(
    "refuses the schema %j, naming the option",
    (schema) => {
      expect(() => resolveNames({ schema })).toThrow(
        expect.objectContaining({
          code: "invalid-argument",
          message: expect.stringContaining("schema"),
        }),
      );
    },
  );

  it("quotes what it puts into a statement", () => {
    expect(quoteIdentifier('a"b')).toBe('"a""b"');
    expect(qualifiedName({ prefix: "p", schema: 'My "S"' }, "jobs")).toBe('"My ""S"""."p_jobs"');
  });
});
