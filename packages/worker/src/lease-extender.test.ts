import { type ExtendLeaseResult, isVenturiError, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { LeaseExtender } from "./lease-extender.ts";
import { Run } from "./run.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { type Deferred, deferred } from "./testing/signals.ts";

let clock: ManualClock;
let sent: number[];
let answer: (count: number) => readonly ExtendLeaseResult[] | Promise<readonly ExtendLeaseResult[]>;
let events: string[];
let extender: LeaseExtender;

const deadline = new Date("2030-01-01T00:00:00Z");
const applied: ExtendLeaseResult = { verdict: "applied", leaseExpiresAt: deadline, leaseMs: 5_000 };
const stopped = new VenturiError("shutdown", "stop");

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  events = [];
  answer = (count) => Array.from({ length: count }, () => applied);
  extender = new LeaseExtender({
    store: {
      extendLease: async ({ extensions }) => {
        sent.push(extensions.length);
        return { results: await answer(extensions.length) };
      },
    },
    worker: 1,
    clock,
    logger: recordingLogger().logger,
    onExtended: ({ job }) => events.push(`${job.id} extended`),
    onLost: ({ job }) => events.push(`${job.id} lost`),
  });
});

/** A run with a lease of ten seconds, whose claim took no time to be answered. */
function runOf(id: string): Run {
  const job = { id, runCount: 1, leaseMs: 10_000, leaseExpiresAt: new Date(0) };
  return new Run(job as Run["job"], {} as Run["registration"], clock.now(), clock.now());
}

/** How a promise ends: its value, or the code of what it rejects with. */
function endOf(promise: Promise<Date>): { value: unknown } {
  const end: { value: unknown } = { value: undefined };
  promise.then(
    (value) => {
      end.value = value;
    },
    (error: unknown) => {
      end.value = isVenturiError(error) ? error.code : error;
    },
  );
  return end;
}

test("a lease is counted from before the request was sent, and is over for certain after the answer", async () => {
  const held: Deferred<readonly ExtendLeaseResult[]> = deferred();
  answer = () => held.promise;
  const run = runOf("a");
  const start = clock.now();
  const end = endOf(extender.extend(run, 5_000));
  await clock.advance(8_000);
  held.resolve([applied]);
  await clock.settle();
  expect(end.value).toBe(deadline);
  expect(run.deadline).toBe(deadline);
  // The claim's own lease is known to hold longer than the request's answer proves.
  expect(run.leaseEndsAt - start).toBe(10_000);
  expect(run.overdueAt - start).toBe(13_000);
});

test("a longer lease moves both ends", async () => {
  const held: Deferred<readonly ExtendLeaseResult[]> = deferred();
  answer = () => held.promise;
  const run = runOf("a");
  const start = clock.now();
  await clock.advance(1_000);
  void extender.extend(run, 60_000);
  await clock.advance(2_000);
  held.resolve([{ ...applied, leaseMs: 60_000 }]);
  await clock.settle();
  expect(run.leaseEndsAt - start).toBe(61_000);
  expect(run.overdueAt - start).toBe(63_000);
  expect(run.leaseMs).toBe(60_000);
});

test("calls of one turn share a statement, and those during a statement the next", async () => {
  const held: Deferred<readonly ExtendLeaseResult[]> = deferred();
  answer = () => held.promise;
  for (const id of ["a", "b"]) void extender.extend(runOf(id), 5_000);
  await clock.settle();
  for (const id of ["c", "d", "e"]) void extender.extend(runOf(id), 5_000);
  await clock.settle();
  expect(sent).toEqual([2]);
  answer = (count) => Array.from({ length: count }, () => applied);
  held.resolve([applied, applied]);
  await clock.settle();
  expect(sent).toEqual([2, 3]);
});

test("a lost claim is told, and rejects with claim-lost", async () => {
  answer = () => [{ verdict: "lost" }, applied];
  const [a, b] = [
    endOf(extender.extend(runOf("a"), 5_000)),
    endOf(extender.extend(runOf("b"), 5_000)),
  ];
  await clock.settle();
  expect([a.value, b.value]).toEqual(["claim-lost", deadline]);
  expect(events).toEqual(["a lost", "b extended"]);
});

describe("a row that somebody has locked", () => {
  test("is tried again until it can be had", async () => {
    answer = (count) => (sent.length < 4 ? [{ verdict: "busy" }] : Array(count).fill(applied));
    const end = endOf(extender.extend(runOf("a"), 5_000));
    await clock.advance(500);
    expect(sent).toHaveLength(4);
    expect(end.value).toBe(deadline);
  });

  test("but not beyond the end of the lease", async () => {
    answer = () => [{ verdict: "busy" }];
    const end = endOf(extender.extend(runOf("a"), 5_000));
    await clock.advance(12_000);
    expect(end.value).toBe("lease-ended");
    expect(clock.pending).toBe(0);
  });
});

describe("when the database fails", () => {
  test("for a while, the call goes on trying", async () => {
    answer = (count) => {
      if (sent.length < 3) throw new VenturiError("database", "gone", { isRetryable: true });
      return Array(count).fill(applied);
    };
    const end = endOf(extender.extend(runOf("a"), 5_000));
    await clock.advance(2_000);
    expect(end.value).toBe(deadline);
  });

  test("for good, the call rejects with what it says and nothing more is sent", async () => {
    answer = () => {
      throw new VenturiError("database", "permission denied", { sqlState: "42501" });
    };
    const end = endOf(extender.extend(runOf("a"), 5_000));
    await clock.advance(20_000);
    expect(end.value).toBe("database");
    expect(sent).toHaveLength(1);
  });
});

test("a stop rejects what still waits and leaves no timer", async () => {
  answer = () => [{ verdict: "busy" }];
  const end = endOf(extender.extend(runOf("a"), 5_000));
  await clock.settle();
  extender.stop(stopped);
  await clock.settle();
  expect(end.value).toBe("shutdown");
  expect(clock.pending).toBe(0);
});
