import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { type Logger, pinoLogger, silentLogger } from "./logger.ts";

describe("a logger", () => {
  it("that is silent takes everything and writes nothing", () => {
    for (const level of ["debug", "info", "warn", "error"] as const) {
      expect(silentLogger[level]("message", { field: 1 })).toBeUndefined();
    }
  });

  it("may be pino, or a child of it", () => {
    const lines: string[] = [];
    const root = pino({ level: "debug", base: null }, { write: (line) => void lines.push(line) });
    const logger = pinoLogger(root.child({ service: "mail" }));
    logger.debug("to debug");
    logger.info("to inform");
    logger.warn("to warn", { jobId: "j1", runCount: 2 });
    logger.error("to err", { error: "no" });
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 20, service: "mail", msg: "to debug" },
      { level: 30, service: "mail", msg: "to inform" },
      { level: 40, service: "mail", msg: "to warn", jobId: "j1", runCount: 2 },
      { level: 50, service: "mail", msg: "to err", error: "no" },
    ]);
  });

  it("may be the console", () => {
    expect((console satisfies Logger).warn).toBeTypeOf("function");
  });
});
