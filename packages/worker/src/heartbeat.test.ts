import { type BeatResult, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { type Beat, Heartbeat } from "./heartbeat.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { deferred } from "./testing/signals.ts";

const longUp = 1_000_000_000;
const quiet: BeatResult = { silent: [], nextSuspectMs: null, serverUpMs: longUp };

let clock: ManualClock;
let sentAt: number[];
let beats: Beat[];
let published: number[];
let answer: () => BeatResult | Promise<BeatResult>;

const outage = (): BeatResult => {
  throw new VenturiError("database", "gone", { isRetryable: true });
};

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
  isBrief = false,
  random = (): number => 0,
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
    isBrief,
    random,
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

  test("counted from sending to sending, so that a slow answer does not make a worker look silent", async () => {
    const answered = deferred<BeatResult>();
    answer = () => answered.promise;
    const started = heartbeat().start();
    await clock.advance(2_000);
    answer = () => quiet;
    answered.resolve(quiet);
    await started;
    await clock.advance(8_000);
    expect(sentAt).toEqual([0, 5_000, 10_000]);
  });

  test("sooner, at the moment the nearest worker becomes suspect", async () => {
    answer = () => (sentAt.length === 1 ? { ...quiet, nextSuspectMs: 700 } : quiet);
    await heartbeat().start();
    await clock.advance(701);
    expect(sentAt).toEqual([0, 701]);
  });

  test("of many others only some wake for that: the more there are, the fewer before they would beat anyway", async () => {
    answer = () => ({ ...quiet, nextSuspectMs: 700, others: 20 });
    let draws = 0;
    const random = () => ((draws++ * 7) % 20) / 20;
    for (let n = 0; n < 20; n += 1) await heartbeat({ random }).start();
    await clock.advance(60_000);
    const [first] = sentAt.filter((at) => at > 0);
    expect(first).toBe(701);
    // 240 without any suspect, and 1,720 if each woke for it.
    expect(sentAt.length).toBeLessThan(340);
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
    await clock.advance(5_000);
    expect(sentAt).toEqual([0, 0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000]);
  });

  test("one that fails is made again soon, with growing waits, so that a worker is heard of soon after an outage", async () => {
    const service = heartbeat();
    answer = outage;
    await service.start();
    await clock.advance(7_000);
    answer = () => quiet;
    await clock.advance(10_000);
    expect(sentAt).toEqual([0, 250, 750, 1_750, 3_750, 5_750, 7_750, 12_750]);
    expect(beats).toHaveLength(2);
  });

  test("after one that succeeded the waits begin anew", async () => {
    answer = outage;
    await heartbeat().start();
    await clock.advance(2_000);
    answer = () => quiet;
    await clock.advance(2_000);
    expect(sentAt).toEqual([0, 250, 750, 1_750, 3_750]);
    answer = outage;
    await clock.advance(6_000);
    expect(sentAt.slice(5)).toEqual([8_750, 9_000, 9_500]);
  });

  test("one that fails is made again no later than the next would have been", async () => {
    answer = outage;
    await heartbeat({ workerTimeoutMs: 300 }).start();
    await clock.advance(300);
    expect(sentAt).toEqual([0, 100, 200, 300]);
  });
});

describe("whether claims that are not overdue may be taken from a dead worker", () => {
  const allowed = () => beats.map(({ silent }) => silent[0]?.mayBeTakenFrom ?? null);
  const dead =
    (timeoutMs: number, changes: Partial<BeatResult> = {}) =>
    (): BeatResult => {
      const worker = { worker: 2, name: "b", silentMs: 3_600_000, timeoutMs, dead: true };
      return { ...quiet, silent: [worker], others: 0, ...changes };
    };

  test("not before this worker has beaten for the other's timeout: both may have been cut off until it started", async () => {
    answer = dead(12_000);
    await heartbeat({ workerTimeoutMs: 3_600_000 }).start();
    await clock.advance(15_000);
    expect(allowed().slice(0, 5)).toEqual([false, false, false, false, true]);
    expect(sentAt[4]).toBe(12_000);
  });

  test("and as soon as that has passed, whatever the own interval", async () => {
    answer = dead(31_000);
    await heartbeat().start();
    await clock.advance(32_000);
    expect(sentAt.slice(-2)).toEqual([30_000, 31_001]);
    expect(allowed().slice(-2)).toEqual([false, true]);
  });

  test("for its own timeout where the store does not say the other's", async () => {
    answer = () => ({ ...quiet, silent: [{ worker: 2, name: "b", silentMs: 1e6, dead: true }] });
    await heartbeat({ workerTimeoutMs: 8_000 }).start();
    await clock.advance(8_100);
    expect(allowed().slice(-2)).toEqual([false, true]);
  });

  test("not before the server has been up for as long", async () => {
    await heartbeat().start();
    await clock.advance(30_000);
    beats = [];
    answer = dead(30_000, { serverUpMs: 29_999 });
    await clock.advance(5_000);
    answer = dead(30_000, { serverUpMs: 34_999 });
    await clock.advance(5_000);
    expect(allowed()).toEqual([false, true]);
  });

  test.each([
    ["whatever its own settings", { workerTimeoutMs: 600_000, heartbeatMs: 10_000 }],
    ["with the same", {}],
  ])(
    "not before that has passed since a time without an answer of over half of it, %s",
    async (_, options) => {
      await heartbeat(options).start();
      await clock.advance(60_000);
      answer = outage;
      await clock.advance(15_000);
      answer = dead(30_000);
      beats = [];
      await clock.advance(30_000);
      expect(allowed()).not.toContain(true);
      await clock.advance(5_000);
      expect(allowed().at(-1)).toBe(true);
    },
  );

  test("not on the word of regular beats that are further apart: those of a short timeout may have failed between", async () => {
    await heartbeat().start();
    await clock.advance(60_000);
    beats = [];
    sentAt = [];
    answer = dead(3_000);
    await clock.advance(8_000);
    // More often than usual meanwhile, and as ever once it has been taken from.
    expect(sentAt).toEqual([65_000, 65_750, 66_500, 67_250, 68_000]);
    expect(allowed()).toEqual([false, false, false, false, true]);
  });

  test("also where answers are slow: the beats of those who wait count from sending to sending", async () => {
    await heartbeat().start();
    await clock.advance(60_000);
    sentAt = [];
    answer = () => {
      clock.standStill(300);
      return dead(3_000)();
    };
    await clock.advance(6_500);
    expect(sentAt).toEqual([65_000, 65_750, 66_500]);
  });

  test("at once where beats often fail to be on time, but never for half of it", async () => {
    const service = heartbeat({ heartbeatMs: 100 });
    await service.start();
    // A handler keeps the process busy for five beats, again and again.
    const busy = async () => {
      clock.standStill(500);
      await clock.advance(0);
    };
    for (let n = 0; n < 100; n += 1) await busy();
    answer = dead(10_000);
    beats = [];
    await busy();
    expect(allowed()).toEqual([true]);
  });

  test("an answer that lay there while the process stood still does not hide what came after", async () => {
    await heartbeat().start();
    await clock.advance(60_000);
    // Sent at 65,000, carried out at once and read ten seconds later; then nobody answers for a while.
    answer = () => {
      clock.standStill(10_000);
      answer = outage;
      return quiet;
    };
    await clock.advance(5_000);
    await clock.advance(12_000);
    answer = dead(40_000);
    beats = [];
    await clock.advance(5_000);
    expect(allowed()).not.toContain(true);
  });

  test("a shorter gap does not matter", async () => {
    await heartbeat().start();
    await clock.advance(30_000);
    answer = outage;
    await clock.advance(10_000);
    answer = dead(30_000);
    await clock.advance(5_000);
    expect(allowed().at(-1)).toBe(true);
  });

  describe("where the store's clock is set", () => {
    const steadily = (stoodAt: number) => {
      const since = clock.now();
      return (changes: Partial<BeatResult> = {}) => ({
        ...changes,
        clockMs: stoodAt + clock.now() - since,
      });
    };

    test("forward: everyone looks silent, and has its timeout to beat again", async () => {
      let told = steadily(1e12);
      answer = () => ({ ...quiet, ...told() });
      await heartbeat().start();
      await clock.advance(60_000);
      told = steadily(1e12 + 80_000);
      beats = [];
      answer = () => ({ ...dead(30_000)(), ...told() });
      await clock.advance(30_000);
      expect(allowed()).not.toContain(true);
      await clock.advance(5_000);
      expect(allowed().at(-1)).toBe(true);
    });

    test.each([
      ["by no more than a slow answer takes", 5_900],
      ["back", -80_000],
    ])("%s: as ever", async (_, ms) => {
      let told = steadily(1e12);
      answer = () => ({ ...quiet, ...told() });
      await heartbeat().start();
      await clock.advance(60_000);
      answer = () => {
        clock.standStill(5_000);
        told = steadily(1e12 + 65_000 + ms);
        answer = () => ({ ...dead(30_000)(), ...told() });
        return { ...dead(30_000)(), ...told() };
      };
      beats = [];
      await clock.advance(5_000);
      expect(allowed()[0]).toBe(true);
    });

    test("back to before the server's start: by what this worker knows itself", async () => {
      await heartbeat().start();
      await clock.advance(30_000);
      beats = [];
      answer = dead(30_000, { serverUpMs: -85_000 });
      await clock.advance(5_000);
      expect(allowed()).toEqual([true]);
    });
  });

  test.each([
    ["at once if no other lives", 0, true],
    ["not if another lives, which will do it", 1, false],
  ])("in a brief session, %s", async (_, others, expected) => {
    answer = dead(30_000, { others });
    await heartbeat({ isBrief: true }).start();
    expect(allowed()).toEqual([expected]);
  });
});

describe("whether others took this worker for dead", () => {
  test("yes, once its beats have failed for longer than its worker timeout", async () => {
    await heartbeat().start();
    answer = outage;
    await clock.advance(30_000);
    answer = () => quiet;
    await clock.advance(10_000);
    expect(beats.map(({ wasSilent }) => wasSilent)).toEqual([false, true, false]);
  });

  test("yes, after its machine was suspended: the store's clock went on while its own stood still", async () => {
    let clockMs = 1e12;
    answer = () => ({ ...quiet, clockMs });
    await heartbeat().start();
    for (const ms of [5_000, 36_000, 5_000, 29_000, -600_000, 5_000]) {
      clockMs += ms;
      await clock.advance(5_000);
    }
    expect(beats.map(({ wasSilent }) => wasSilent)).toEqual([
      false,
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  test("yes, where its first beat was answered too late", async () => {
    answer = outage;
    await heartbeat().start();
    await clock.advance(31_000);
    answer = () => quiet;
    await clock.advance(2_000);
    expect(beats[0]?.wasSilent).toBe(true);
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

test("a stop waits for the beat on its way, which nobody is told of, and leaves no timer", async () => {
  const answered = deferred<BeatResult>();
  answer = () => answered.promise;
  const service = heartbeat();
  void service.start();
  let isStopped = false;
  const stopped = service.stop().then(() => {
    isStopped = true;
  });
  await clock.settle();
  expect(isStopped).toBe(false);
  answered.resolve(quiet);
  await stopped;
  expect(clock.pending).toBe(0);
  expect(beats).toEqual([]);
});
