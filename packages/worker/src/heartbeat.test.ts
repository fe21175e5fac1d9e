import { type BeatResult, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { type Beat, Heartbeat } from "./heartbeat.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";

const longUp = 1_000_000_000;
const quiet: BeatResult = { silent: [], nextSuspectMs: null, serverUpMs: longUp };

let clock: ManualClock;
let sentAt: number[];
let beats: Beat[];
let published: number[];
let answer: () => BeatResult;

beforeEach(() => {
  clock = new ManualClock();
  sentAt = [];
  beats = [];
  published = [];
  answer = () => quiet;
});

function heartbeat({
  heartbeatMs = 5_000,
  workerTimeoutMs = 30_000,
  shortestLeaseMs = 900_000,
} = {}) {
  const start = clock.now();
  return new Heartbeat({
    store: {
      beat: async (request) => {
        sentAt.push(clock.now() - start);
        published.push(request.shortestLeaseMs);
        return answer();
      },
    },
    worker: 1,
    clock,
    logger: recordingLogger().logger,
    registration: { name: "a", kinds: ["k"], pollMaxMs: 30_000, workerTimeoutMs, shortestLeaseMs },
    heartbeatMs,
    onBeat: (beat) => beats.push(beat),
  });
}

describe("how often", () => {
  test.each([
    ["the heartbeat", {}, 5_000],
    ["a third of the worker timeout", { workerTimeoutMs: 3_000 }, 1_000],
    ["a third of the shortest lease", { shortestLeaseMs: 1_200 }, 400],
  ])("%s, where that is shortest", async (_, options, interval) => {
    const service = heartbeat(options);
    await service.start();
    await clock.advance(3 * interval);
    expect(sentAt).toEqual([0, interval, 2 * interval, 3 * interval]);
  });

  test("sooner, at the moment the nearest worker becomes suspect", async () => {
    answer = () => (sentAt.length === 1 ? { ...quiet, nextSuspectMs: 700 } : quiet);
    await heartbeat().start();
    await clock.advance(701);
    expect(sentAt).toEqual([0, 701]);
  });

  test("never in a tight loop, however near the next suspect is", async () => {
    answer = () => ({ ...quiet, nextSuspectMs: 0 });
    await heartbeat().start();
    await clock.advance(1_000);
    expect(sentAt.length).toBeLessThanOrEqual(21);
  });

  test("a shorter lease than was known is published at once and shortens the interval", async () => {
    const service = heartbeat();
    await service.start();
    service.noticeLease(3_000);
    await clock.advance(1_000);
    expect(published).toEqual([900_000, 3_000, 3_000]);
    expect(sentAt).toEqual([0, 0, 1_000]);
  });

  test("it goes on when a beat fails", async () => {
    const service = heartbeat();
    answer = () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    await service.start();
    await clock.advance(5_000);
    answer = () => quiet;
    await clock.advance(5_000);
    expect(sentAt).toEqual([0, 5_000, 10_000]);
    expect(beats).toHaveLength(1);
  });
});

describe("whether claims that are not overdue may be taken from dead workers", () => {
  test("not before the server has been up for the whole worker timeout", async () => {
    answer = () => ({ ...quiet, serverUpMs: 29_999 });
    await heartbeat().start();
    answer = () => ({ ...quiet, serverUpMs: 34_999 });
    await clock.advance(5_000);
    expect(beats.map(({ mayTakeFromDead }) => mayTakeFromDead)).toEqual([false, true]);
  });

  test("not before the whole worker timeout has passed since a gap of its own of over half of it", async () => {
    const service = heartbeat();
    await service.start();
    answer = () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    await clock.advance(15_000);
    answer = () => quiet;
    beats = [];
    await clock.advance(35_000);
    const allowed = beats.map(({ mayTakeFromDead }) => mayTakeFromDead);
    expect(allowed).toEqual([false, false, false, false, false, false, true]);
  });

  test("a shorter gap does not matter", async () => {
    const service = heartbeat();
    await service.start();
    answer = () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    await clock.advance(10_000);
    answer = () => quiet;
    await clock.advance(5_000);
    expect(beats.at(-1)?.mayTakeFromDead).toBe(true);
  });
});

describe("whether others took this worker for dead", () => {
  const outage = (): BeatResult => {
    throw new VenturiError("database", "gone", { isRetryable: true });
  };

  test("yes, once its beats have failed for longer than its worker timeout", async () => {
    await heartbeat().start();
    answer = outage;
    await clock.advance(30_000);
    answer = () => quiet;
    await clock.advance(10_000);
    expect(beats.map(({ wasSilent }) => wasSilent)).toEqual([false, true, false]);
  });

  test("no, after a shorter silence", async () => {
    await heartbeat().start();
    answer = outage;
    await clock.advance(25_000);
    answer = () => quiet;
    await clock.advance(5_000);
    expect(beats.map(({ wasSilent }) => wasSilent)).toEqual([false, false]);
  });
});

test("after a stop there is no beat and no timer", async () => {
  const service = heartbeat();
  await service.start();
  await service.stop();
  expect(clock.pending).toBe(0);
  await clock.advance(60_000);
  expect(sentAt).toEqual([0]);
});
