import { availableParallelism } from "node:os";
import { Backoff, isVenturiError, silentLogger } from "@venturi/core";
import { describe, expect, test } from "vitest";
import { resolveWorkerOptions, type WorkerOptions } from "./options.ts";

/** The option that an error names. */
function refused(options: unknown): string | undefined {
  try {
    resolveWorkerOptions(options as WorkerOptions);
  } catch (error) {
    if (isVenturiError(error) && error.code === "invalid-argument") return error.argument;
    throw error;
  }
  return undefined;
}

describe("defaults", () => {
  test("are those of the documentation", () => {
    expect(resolveWorkerOptions()).toMatchObject({
      concurrency: Math.max(1, Math.min(8, Math.floor(availableParallelism() / 2))),
      pollMaxMs: 30_000,
      leaseMs: 900_000,
      heartbeatMs: 5_000,
      workerTimeoutMs: 30_000,
      shutdownTimeoutMs: 30_000,
      backoff: { baseMs: 500, capMs: 120_000 },
      jitterFraction: 0.5,
      backstop: 20,
      panicPolicy: "retry",
      priorityRatio: 4,
      logger: silentLogger,
    });
  });

  test("a worker's name tells host, process and worker apart", () => {
    const [first, second] = [resolveWorkerOptions(), resolveWorkerOptions()].map(
      ({ name }) => name,
    );
    expect(first).toMatch(/^.+:\d+:[0-9a-f]{8}$/);
    expect(second).not.toBe(first);
  });
});

describe("durations", () => {
  test.each([
    ["pollMax", "pollMaxMs", 1],
    ["lease", "leaseMs", 1_000],
    ["heartbeat", "heartbeatMs", 100],
    ["workerTimeout", "workerTimeoutMs", 300],
    ["shutdownTimeout", "shutdownTimeoutMs", 0],
  ] as const)(
    "%s: 0 is its floor, text and numbers are read, nonsense is refused",
    (name, resolved, floor) => {
      const read = (value: unknown) =>
        resolveWorkerOptions({ [name]: value } as WorkerOptions)[resolved];
      expect(read(0)).toBe(floor);
      expect(read("5s")).toBe(5_000);
      expect(read(7_500)).toBe(7_500);
      for (const value of [-1, Number.NaN, "5 parsecs", "-5m", "", null, {}]) {
        expect(refused({ [name]: value })).toBe(name);
      }
    },
  );

  test("Infinity means never; a lease ends after a year all the same", () => {
    const never = Number.POSITIVE_INFINITY;
    expect(
      resolveWorkerOptions({ pollMax: never, lease: never, shutdownTimeout: never }),
    ).toMatchObject({
      pollMaxMs: never,
      leaseMs: 365 * 86_400_000,
      shutdownTimeoutMs: never,
    });
  });
});

describe("numbers", () => {
  test("concurrency is a whole number of at least 1", () => {
    for (const concurrency of [1, 16, 2 ** 31 - 1])
      expect(resolveWorkerOptions({ concurrency }).concurrency).toBe(concurrency);
    for (const concurrency of [
      0,
      -1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 31,
      "4",
      null,
    ]) {
      expect(refused({ concurrency })).toBe("concurrency");
    }
  });

  test("backstop and priorityRatio may be null", () => {
    expect(resolveWorkerOptions({ backstop: null, priorityRatio: null })).toMatchObject({
      backstop: null,
      priorityRatio: null,
    });
    for (const value of [0, -1, 1.5, 2 ** 31, Number.MAX_SAFE_INTEGER, "3"]) {
      expect(refused({ backstop: value })).toBe("backstop");
      expect(refused({ priorityRatio: value })).toBe("priorityRatio");
    }
  });

  test("jitterFraction is clamped to 0 … 1, and no NaN", () => {
    const read = (jitterFraction: number) =>
      resolveWorkerOptions({ jitterFraction }).jitterFraction;
    expect([-1, 0, 0.25, 2].map(read)).toEqual([0, 0, 0.25, 1]);
    expect(refused({ jitterFraction: Number.NaN })).toBe("jitterFraction");
    expect(refused({ jitterFraction: "0.5" })).toBe("jitterFraction");
  });

  test("prefetch is auto or a whole number from 0 to 10,000", () => {
    for (const prefetch of ["auto", 0, 10, 10_000] as const)
      expect(resolveWorkerOptions({ prefetch }).prefetch).toBe(prefetch);
    for (const prefetch of [-1, 1.5, 10_001, Number.NaN, "some", "10", null])
      expect(refused({ prefetch })).toBe("prefetch");
    expect(resolveWorkerOptions({}).prefetch).toBe("auto");
  });
});

describe("everything else", () => {
  test("a panic policy is retry or dead", () => {
    expect(resolveWorkerOptions({ panicPolicy: "dead" }).panicPolicy).toBe("dead");
    for (const value of ["ignore", true, null]) {
      expect(refused({ panicPolicy: value })).toBe("panicPolicy");
    }
  });

  test("a backoff is a Backoff", () => {
    const backoff = new Backoff({ base: "1s" });
    expect(resolveWorkerOptions({ backoff }).backoff).toBe(backoff);
    expect(refused({ backoff: { base: 1, cap: 2 } })).toBe("backoff");
  });

  test("a name is text that the database can store", () => {
    expect(resolveWorkerOptions({ name: "mail-1" }).name).toBe("mail-1");
    expect(resolveWorkerOptions({ name: "x".repeat(200) }).name).toHaveLength(200);
    for (const name of ["", "  ", "a\u0000", "\ud800", "x".repeat(201), 5]) {
      expect(refused({ name })).toBe("name");
    }
  });

  test("a logger has the four levels; console is one", () => {
    expect(refused({ logger: console })).toBeUndefined();
    expect(refused({ logger: { info: console.info } })).toBe("logger");
    expect(refused({ logger: null })).toBe("logger");
  });

  test("an unknown option is named, and options are an object", () => {
    expect(refused({ concurency: 4 })).toBe("concurency");
    for (const options of [null, 5, []]) expect(refused(options)).toBe("options");
  });
});
