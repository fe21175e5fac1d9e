import { toDatabaseError, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "./testing/manual-clock.ts";
import { type LogRecord, recordingLogger } from "./testing/recording-logger.ts";
import { Trouble } from "./trouble.ts";

let clock: ManualClock;
let records: LogRecord[];
let trouble: Trouble;
const refused = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

beforeEach(() => {
  const recording = recordingLogger();
  clock = new ManualClock();
  records = recording.records;
  trouble = new Trouble({ clock, logger: recording.logger, doing: "claim jobs", random: () => 0 });
});

describe("while a call keeps failing", () => {
  test("tries grow apart: at most eight in ten seconds", () => {
    let at = 0;
    let tries = 0;
    const { logger } = recordingLogger();
    const hasty = new Trouble({ clock, logger, doing: "x", random: () => 0.999 });
    for (; at <= 10_000; tries += 1) at += hasty.failed(refused());
    expect(tries).toBeLessThanOrEqual(8);
  });

  test("tries are never further apart than four seconds, or what was asked for", () => {
    const { logger } = recordingLogger();
    const patient = new Trouble({ clock, logger, doing: "x", mostMs: 300, random: () => 0 });
    for (let i = 0; i < 20; i += 1) {
      expect(trouble.failed(refused())).toBeLessThanOrEqual(4_000);
      expect(patient.failed(refused())).toBeLessThanOrEqual(300);
    }
  });

  test("the same error is logged once a minute, then with how often it was not", async () => {
    for (let i = 0; i < 100; i += 1) trouble.failed(refused());
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      level: "warn",
      message: "could not claim jobs, trying again",
    });
    await clock.advance(60_000);
    trouble.failed(refused());
    expect(records).toHaveLength(2);
    expect(records[1]?.fields).toMatchObject({ unlogged: 99 });
  });

  test("an error is the same whatever number of items it was met with", () => {
    for (let n = 1; n <= 50; n += 1) {
      const cause = Object.assign(new Error("sorry, too many clients"), { code: "53300" });
      trouble.failed(toDatabaseError(cause, { doing: `settle ${n} runs`, prefix: "venturi" }));
    }
    expect(records).toHaveLength(1);
    expect(records[0]?.fields["error"]).toContain("settle 1 runs: sorry");
  });

  test("another error is logged at once", () => {
    trouble.failed(refused());
    trouble.failed(new VenturiError("database", "read-only", { sqlState: "25006" }));
    expect(records.map(({ fields }) => fields["sqlState"])).toEqual([null, "25006"]);
  });

  test("a log record holds no connection parameters and stays small", () => {
    const cause = Object.assign(new Error(`postgres://app:secret@db/x ${"y".repeat(10_000)}`), {
      client: { connectionParameters: { password: "secret" } },
    });
    trouble.failed(new VenturiError("database", "could not claim", { cause, isRetryable: true }));
    const text = JSON.stringify(records);
    expect(text).not.toContain("secret");
    expect(text).not.toContain("connectionParameters");
    expect(text.length).toBeLessThan(4_000);
  });
});

test("a success after failures is logged once, and the waits start again", () => {
  const [first] = [trouble.failed(refused()), trouble.failed(refused())];
  trouble.succeeded();
  trouble.succeeded();
  expect(records.map(({ message }) => message)).toEqual([
    "could not claim jobs, trying again",
    "can claim jobs again",
  ]);
  expect(trouble.failed(refused())).toBe(first);
});

test("what fails and succeeds in turns is logged once a minute, however often it does", async () => {
  for (let at = 0; at < 10 * 60_000; at += 100) {
    trouble.failed(refused());
    trouble.succeeded();
    await clock.advance(100);
  }
  expect(records).toHaveLength(20);
  expect(records[2]?.fields).toMatchObject({ unlogged: 599 });
});
