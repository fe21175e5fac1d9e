import { describe, expect, it } from "vitest";
import { readDatabaseFault, toDatabaseError } from "./database-error.ts";
import { isVenturiError, VenturiError } from "./errors.ts";

const statement = { doing: "enqueue a job", prefix: "venturi" };

function driverError(fields: Record<string, unknown>, message = "failed"): Error {
  return Object.assign(new Error(message), fields);
}

describe("an error of a database driver", () => {
  it.each([
    ["40001", true, "refused"],
    ["40P01", true, "refused"],
    ["40003", true, "unknown"],
    ["53100", true, "refused"],
    ["55P03", true, "refused"],
    ["57014", true, "refused"],
    ["57P01", true, "unknown"],
    ["57P02", true, "unknown"],
    ["57P03", true, "not-sent"],
    ["57P05", true, "refused"],
    ["25P03", true, "refused"],
    ["25P04", true, "refused"],
    ["25006", true, "refused"],
    ["08001", true, "not-sent"],
    ["08006", true, "unknown"],
    ["08P01", true, "unknown"],
    ["53300", true, "not-sent"],
    ["28P01", false, "not-sent"],
    ["3D000", false, "not-sent"],
    ["42501", false, "refused"],
    ["23505", false, "refused"],
    ["22P02", false, "refused"],
    ["P0001", false, "refused"],
  ])("with SQLSTATE %s: retryable %s, statement %s", (code, isRetryable, fate) => {
    expect(readDatabaseFault(driverError({ code, severity: "ERROR" }))).toMatchObject({
      sqlState: code,
      isRetryable,
      fate,
    });
  });

  it.each([
    [driverError({ code: "ECONNREFUSED", errno: -111, syscall: "connect" }), true, "not-sent"],
    [driverError({ code: "ETIMEDOUT", errno: -110, syscall: "connect" }), true, "not-sent"],
    [driverError({ code: "ENOTFOUND", syscall: "getaddrinfo" }), true, "not-sent"],
    [driverError({ code: "ENOENT", syscall: "connect" }), true, "not-sent"],
    [new Error("timeout exceeded when trying to connect"), true, "not-sent"],
    [new Error("Connection terminated due to connection timeout"), true, "not-sent"],
    [new Error("Client has encountered a connection error and is not queryable"), true, "not-sent"],
    [new Error("Client was closed and is not queryable"), false, "not-sent"],
    [new Error("Cannot use a pool after calling end on the pool"), false, "not-sent"],
    [new Error("driver has already been destroyed"), false, "not-sent"],
    [driverError({ code: "EPIPE", errno: -32, syscall: "write" }), true, "unknown"],
    [driverError({ code: "P2010" }), false, "refused"],
    [driverError({ code: "ECONNRESET", errno: -104, syscall: "read" }), true, "unknown"],
    [new Error("Connection terminated unexpectedly"), true, "unknown"],
    [new Error("Query read timeout"), true, "unknown"],
    [new TypeError("x is not a function"), false, "refused"],
  ])("without SQLSTATE, %s: retryable %s, statement %s", (error, isRetryable, fate) => {
    expect(readDatabaseFault(error)).toMatchObject({ sqlState: null, isRetryable, fate });
  });

  it("is recognised through the wrappers of query builders", () => {
    const inner = driverError({ code: "40P01", severity: "ERROR" }, "deadlock detected");
    const wrapped = new Error("Failed query: select", {
      cause: new Error("outer", { cause: inner }),
    });
    expect(readDatabaseFault(wrapped)).toMatchObject({
      sqlState: "40P01",
      message: "deadlock detected",
    });
  });

  it("is recognised among the attempts at several addresses", () => {
    const attempts = [
      driverError({ code: "ECONNREFUSED", syscall: "connect" }, "connect ECONNREFUSED ::1:5432"),
    ];
    const error = Object.assign(new AggregateError(attempts, ""), { code: "ECONNREFUSED" });
    expect(readDatabaseFault(error)).toMatchObject({
      fate: "not-sent",
      isRetryable: true,
      message: "connect ECONNREFUSED ::1:5432",
    });
  });

  it("may be anything, also a cycle and what throws when it is looked at", () => {
    const cycle = new Error("cycle");
    cycle.cause = cycle;
    const hostile = {
      get message(): string {
        throw new Error("no");
      },
    };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    for (const error of [undefined, null, "text", 0, Symbol("s"), cycle, hostile, revoked.proxy]) {
      expect(toDatabaseError(error, statement)).toMatchObject({
        code: "database",
        isRetryable: false,
      });
    }
  });
});

describe("the error that venturi throws for it", () => {
  it("says what was being done and what the server said, with SQLSTATE and cause", () => {
    const cause = driverError({ code: "53100", severity: "ERROR" }, "disk full");
    const error = toDatabaseError(cause, statement);
    expect(isVenturiError(error)).toBe(true);
    expect(error).toMatchObject({
      code: "database",
      sqlState: "53100",
      isRetryable: true,
      message: "could not enqueue a job: disk full",
      cause,
    });
  });

  it.each([
    ["42883", "function public.venturi_enqueue_v1(jsonb) does not exist"],
    ["42P01", 'relation "public.venturi_queue" does not exist'],
    ["3F000", 'schema "jobs" does not exist'],
  ])("is not-migrated for %s, and says what to do", (code, message) => {
    expect(toDatabaseError(driverError({ code }, message), statement)).toMatchObject({
      code: "not-migrated",
      message: expect.stringContaining("run migrate"),
    });
  });

  it("is not not-migrated for what somebody else's trigger misses", () => {
    const error = driverError({ code: "42P01" }, 'relation "audit" does not exist');
    expect(toDatabaseError(error, statement)).toMatchObject({ code: "database" });
  });

  it("never repeats the credentials of a connection string", () => {
    const cause = new Error("Invalid URL postgres://ann:s3cret@db/jobs password=s3cret");
    expect(toDatabaseError(cause, statement).message).not.toContain("s3cret");
  });

  it("is short, however long the driver's is", () => {
    expect(toDatabaseError(new Error("x".repeat(1e6)), statement).message.length).toBeLessThan(
      1200,
    );
  });

  it("is the VenturiError itself where one was thrown", () => {
    const error = new VenturiError("closed", "closed");
    expect(toDatabaseError(error, statement)).toBe(error);
  });
});
