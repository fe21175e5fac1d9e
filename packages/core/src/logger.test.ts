import { describe, expect, it } from "vitest";
import { type Logger, silentLogger } from "./logger.ts";

describe("a logger", () => {
  it("that is silent takes everything and writes nothing", () => {
    for (const level of ["debug", "info", "warn", "error"] as const) {
      expect(silentLogger[level]("message", { field: 1 })).toBeUndefined();
    }
  });

  it("may be the console", () => {
    expect((console satisfies Logger).warn).toBeTypeOf("function");
  });
});
