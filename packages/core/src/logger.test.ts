import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { type LogFields, type Logger, pinoLogger, silentLogger, toLogger } from "./logger.ts";

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

const levels = ["debug", "info", "warn", "error"] as const;

describe("a logger that an application has passed", () => {
  it("and that prints all of its arguments is not given a second one that is not there", () => {
    const calls: unknown[][] = [];
    const note = (...args: [string, LogFields?]): void => void calls.push(args);
    const logger = toLogger({ debug: note, info: note, warn: note, error: note });
    logger.info("up");
    logger.warn("down", { tries: 1 });
    expect(calls).toEqual([["up"], ["down", { tries: 1 }]]);
  });

  it("may throw: nobody hears of it", () => {
    const fail = () => {
      throw new Error("disk full");
    };
    const logger = toLogger({ debug: fail, info: fail, warn: fail, error: fail });
    for (const level of levels) expect(logger[level]("up")).toBeUndefined();
  });

  it("may be asynchronous and fail: nobody hears of it", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    const fail = () => Promise.reject(new Error("disk full"));
    const logger = toLogger({ debug: fail, info: fail, warn: fail, error: fail });
    for (const level of levels) logger[level]("up");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it.each([
    null,
    "console",
    {},
    { warn: () => undefined },
    Object.assign(() => undefined, { warn: () => undefined }),
  ])("is refused where it is none: %j", (value) => {
    expect(() => toLogger(value)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "logger" }),
    );
  });
});
