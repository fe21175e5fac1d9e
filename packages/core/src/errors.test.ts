import { describe, expect, it } from "vitest";
import { abortReason, invalidArgument, isVenturiError, show, VenturiError } from "./errors.ts";

describe("a VenturiError", () => {
  it("carries code, cause and what the code calls for, and nothing else", () => {
    const cause = new Error("inner");
    const error = new VenturiError("database", "could not claim jobs", {
      cause,
      sqlState: "40001",
    });
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe("VenturiError");
    expect(error.cause).toBe(cause);
    expect(String(error)).toBe("VenturiError: could not claim jobs");
    expect(Object.keys(error).sort()).toEqual(["code", "isRetryable", "sqlState"]);
  });

  it("has no cause where none was given", () => {
    expect("cause" in new VenturiError("closed", "closed")).toBe(false);
    expect("cause" in new VenturiError("closed", "closed", { cause: undefined })).toBe(true);
  });

  it("knows whether the call may be made again", () => {
    const retryable = (code: "database" | "enqueue-unknown" | "closed", sqlState?: string) =>
      new VenturiError(code, "", { sqlState }).isRetryable;
    expect(retryable("enqueue-unknown")).toBe(true);
    expect(retryable("database")).toBe(false);
    expect(retryable("database", "40P01")).toBe(true);
    expect(retryable("database", "23505")).toBe(false);
    expect(retryable("closed")).toBe(false);
    expect(new VenturiError("database", "", { isRetryable: true }).isRetryable).toBe(true);
    expect(new VenturiError("enqueue-unknown", "", { isRetryable: false }).isRetryable).toBe(false);
  });

  it("is recognised by its brand, also from another copy of the package", () => {
    const foreign = Object.assign(new Error("from elsewhere"), {
      [Symbol.for("venturi.error")]: true,
      code: "closed",
    });
    expect(isVenturiError(new VenturiError("closed", ""))).toBe(true);
    expect(isVenturiError(foreign)).toBe(true);
    expect(isVenturiError(new Error("closed"))).toBe(false);
    expect(isVenturiError({ code: "closed", isRetryable: false })).toBe(false);
  });

  it.each([
    ["undefined", undefined],
    ["null", null],
    ["text", "closed"],
    ["a symbol", Symbol("x")],
    [
      "a proxy that throws",
      new Proxy(
        {},
        {
          get() {
            throw new Error("trap");
          },
        },
      ),
    ],
  ])("is not %s", (_, value) => {
    expect(isVenturiError(value)).toBe(false);
  });
});

describe("an invalid argument", () => {
  it("says what is wrong and what to do", () => {
    const cause = new Error("inner");
    const error = invalidArgument("lease", "is not a duration (got -1)", "pass milliseconds", {
      cause,
    });
    expect(error).toMatchObject({
      code: "invalid-argument",
      argument: "lease",
      isRetryable: false,
      cause,
      message: "lease is not a duration (got -1): pass milliseconds",
    });
  });
});

describe("the reason of an aborted signal", () => {
  it("is named as the platform's own reason is", () => {
    const reason = abortReason("shutdown", "the worker is shutting down");
    expect(reason.name).toBe("AbortError");
    expect(reason.code).toBe("shutdown");
    expect(isVenturiError(reason)).toBe(true);
    expect(new VenturiError("claim-lost", "").name).toBe("VenturiError");
  });
});

describe("a value in a message", () => {
  it.each([
    ["a\nb", '"a\\nb"'],
    ["a\u007fb\u0085\u2028\u2029", '"a\\u007fb\\u0085\\u2028\\u2029"'],
    ["x".repeat(100), `"${"x".repeat(60)}…"`],
    [5, "5"],
    [10n ** 100n, `1${"0".repeat(59)}`],
    [undefined, "undefined"],
    [null, "null"],
    [Symbol("s"), "Symbol(s)"],
    [Symbol(`a\n${"x".repeat(100)}`), `Symbol(a\\u000a${"x".repeat(51)}`],
    [() => 1, "a function"],
    [[1, 2], "an array"],
    [{ secret: 1 }, "an object"],
  ])("is short and on one line", (value, text) => {
    expect(show(value)).toBe(text);
  });
});
