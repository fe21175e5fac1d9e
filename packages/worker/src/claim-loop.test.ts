import { type ClaimedJob, type ClaimRequest, type ClaimResult, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { ClaimLoop } from "./claim-loop.ts";
import { type KindSlots, Slots } from "./slots.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { type Deferred, deferred } from "./testing/signals.ts";
import { take } from "./testing/take.ts";

const none: ClaimResult = { jobs: [], waitMs: null, blocked: false };

let clock: ManualClock;
let slots: Slots;
let kind: KindSlots;
let requests: { readonly at: number; readonly request: ClaimRequest }[];
let batches: number[];
let room: boolean;
let answer: (request: ClaimRequest) => ClaimResult | Promise<ClaimResult>;
let ahead: number;
let loop: ClaimLoop;
/** What handlers do that end with their call. */
let handle: () => void;
let answerLost: () => Promise<boolean>;
let excluded: string[];
let start: number;

beforeEach(() => {
  clock = new ManualClock();
  start = clock.now();
  requests = [];
  excluded = [];
  batches = [];
  room = true;
  ahead = 0;
  answer = () => none;
  handle = () => undefined;
  answerLost = async () => true;
  loopWith({});
});

function loopWith({ concurrency = 4, pollMaxMs = 30_000 }): void {
  slots = new Slots(concurrency);
  kind = slots.addKind("k", null);
  loop = new ClaimLoop({
    store: {
      claim: async (request) => {
        requests.push({ at: clock.now() - start, request });
        return answer(request);
      },
    },
    worker: 7,
    clock,
    logger: recordingLogger().logger,
    slots,
    ahead: () => ahead,
    terms: () => ({ leaseMs: 900_000, backstop: 20 }),
    priorityRatio: 4,
    pollMaxMs,
    exclude: () => excluded,
    hasRoom: () => room,
    onAnswerLost: () => answerLost(),
    onBatch: ({ jobs }) => {
      batches.push(jobs.length);
      for (const { id } of jobs) take(slots, kind, id);
      handle();
    },
  });
  slots.onFree(() => loop.roomMade());
}

let made = 0;
function jobs(count: number): ClaimedJob[] {
  return Array.from({ length: count }, () => ({
    id: `${made++}`,
    kind: "k",
    priority: "normal",
    payload: "{}",
    carry: null,
    headers: null,
    runCount: 1,
    failureCount: 0,
    latencyMs: 0,
    leaseMs: 900_000,
    leaseExpiresAt: new Date(0),
  }));
}

/** A backlog of this many jobs; what it claimed is kept, to be ended by the test. */
function backlog(count: number): string[] {
  const claimed: string[] = [];
  let left = count;
  answer = ({ limit }) => {
    const brought = jobs(Math.min(limit, left));
    left -= brought.length;
    claimed.push(...brought.map(({ id }) => id));
    return { ...none, jobs: brought };
  };
  return claimed;
}

const times = () => requests.map(({ at }) => at);
const limits = () => requests.map(({ request }) => request.limit);

describe("while jobs wait", () => {
  test("all free slots are claimed for, then nothing is asked until one is free", async () => {
    const claimed = backlog(100);
    loop.start();
    await clock.advance(120_000);
    expect(limits()).toEqual([4]);
    slots.free(kind, claimed[0] as string);
    await clock.settle();
    expect(limits()).toEqual([4, 1]);
  });

  test.each([
    [
      "before the handlers of a large batch are called",
      500,
      ["claim", "claim", "handlers", "handlers"],
    ],
    ["after those of a small one", 499, ["claim", "handlers", "claim", "handlers"]],
  ])("the next claim goes out %s", async (_, count, order) => {
    const happened: string[] = [];
    loopWith({ concurrency: count });
    backlog(10 * count);
    const bring = answer;
    answer = (request) => {
      happened.push("claim");
      return bring(request);
    };
    handle = () => {
      ahead = count;
      clock.soon(() => happened.push("handlers"));
    };
    loop.start();
    await clock.settle();
    expect(happened.slice(0, 4)).toEqual(order);
  });

  test("slots that become free in one turn are claimed for together", async () => {
    const claimed = backlog(100);
    loop.start();
    await clock.settle();
    for (const id of claimed.slice(0, 3)) slots.free(kind, id);
    await clock.settle();
    expect(limits()).toEqual([4, 3]);
  });

  test("one claim is in flight at a time; what becomes free meanwhile goes with the next", async () => {
    const claimed = backlog(100);
    loop.start();
    await clock.settle();
    const pending: Deferred<ClaimResult> = deferred();
    const answerAtOnce = answer;
    answer = () => pending.promise;
    slots.free(kind, claimed[0] as string);
    await clock.settle();
    for (const id of claimed.slice(1, 3)) slots.free(kind, id);
    await clock.settle();
    expect(limits()).toEqual([4, 1]);
    answer = answerAtOnce;
    pending.resolve({ ...none, jobs: jobs(1) });
    await clock.settle();
    expect(limits()).toEqual([4, 1, 2]);
  });

  test("the rotation moves on by the jobs brought back, and an empty claim spends no turn", async () => {
    const claimed = backlog(6);
    loop.start();
    await clock.settle();
    for (const id of claimed.slice(0, 4)) slots.free(kind, id);
    await clock.settle();
    loop.wake();
    await clock.settle();
    loop.wake();
    await clock.settle();
    expect(requests.map(({ request }) => request.turn)).toEqual(
      [0, 4, 6, 6].map((counter) => ({ counter, ratio: 4 })),
    );
  });

  test("nothing is claimed while too many results wait to be settled", async () => {
    room = false;
    loop.start();
    await clock.settle();
    expect(requests).toEqual([]);
    room = true;
    loop.roomMade();
    await clock.settle();
    expect(requests).toHaveLength(1);
  });
});

describe("when there is nothing to do", () => {
  test("it sleeps for pollMax", async () => {
    loop.start();
    await clock.advance(60_000);
    expect(times()).toEqual([0, 30_000, 60_000]);
  });

  test("it does not oversleep by what handlers take that end with their call", async () => {
    answer = () => ({ ...none, jobs: requests.length === 1 ? jobs(1) : [], waitMs: 800 });
    handle = () => clock.standStill(500);
    loop.start();
    await clock.advance(800);
    expect(times()).toEqual([0, 800]);
  });

  test("what is due before such handlers have ended is claimed at once", async () => {
    answer = () => ({ ...none, jobs: requests.length === 1 ? jobs(1) : [], waitMs: 300 });
    handle = () => clock.standStill(500);
    loop.start();
    await clock.advance(510);
    expect(times()).toEqual([0, 500]);
  });

  test("news that such a handler makes is asked for at once", async () => {
    answer = () => ({ ...none, jobs: requests.length === 1 ? jobs(1) : [] });
    handle = () => loop.wake();
    loop.start();
    await clock.settle();
    expect(times()).toEqual([0, 0]);
  });

  test("the slot that such a handler gives back is claimed for at once, where more may wait", async () => {
    loopWith({ concurrency: 1 });
    answer = () => ({ ...none, jobs: requests.length <= 3 ? jobs(1) : [] });
    handle = () => slots.free(kind, `${made - 1}`);
    loop.start();
    await clock.settle();
    expect(limits()).toEqual([1, 1, 1, 1]);
  });

  test("after a stop by such a handler there is neither a claim nor a timer", async () => {
    answer = () => ({ ...none, jobs: jobs(1), waitMs: 10 });
    handle = () => void loop.stop();
    loop.start();
    await clock.advance(60_000);
    expect(times()).toEqual([0]);
    expect(clock.pending).toBe(0);
  });

  test("it sleeps until the soonest job is due, where that comes first", async () => {
    answer = () => ({ ...none, waitMs: requests.length === 1 ? 800 : null });
    loop.start();
    await clock.advance(5_000);
    expect(times()).toEqual([0, 800]);
  });

  test("it does not wake by itself where pollMax is infinite", async () => {
    loopWith({ pollMaxMs: Number.POSITIVE_INFINITY });
    loop.start();
    await clock.advance(1_000_000_000);
    expect(times()).toEqual([0]);
    expect(clock.pending).toBe(0);
  });

  test("a wake-up makes it look at once", async () => {
    loop.start();
    await clock.advance(10_000);
    loop.wake();
    await clock.settle();
    expect(times()).toEqual([0, 10_000]);
  });

  test("and then it sleeps for as long as that look says", async () => {
    loop.start();
    await clock.advance(10_000);
    loop.wake();
    await clock.advance(30_000);
    expect(times()).toEqual([0, 10_000, 40_000]);
  });

  test("nothing is asked before it is started", async () => {
    loop.wake();
    loop.roomMade();
    await clock.settle();
    expect(requests).toEqual([]);
    loop.start();
    await clock.settle();
    expect(times()).toEqual([0]);
  });

  test("a burst of wake-ups makes it look once", async () => {
    loop.start();
    await clock.settle();
    for (let i = 0; i < 1_000; i += 1) loop.wake();
    await clock.settle();
    expect(requests).toHaveLength(2);
  });

  test("a wake-up while a claim is in flight is not lost, however early it comes", async () => {
    const pending: Deferred<ClaimResult> = deferred();
    answer = () => pending.promise;
    loop.start();
    await clock.settle();
    loop.wake();
    loop.wake();
    answer = () => none;
    pending.resolve(none);
    await clock.settle();
    expect(times()).toEqual([0, 0]);
  });
});

describe("a notification that names a job", () => {
  const hints = () => requests.map(({ request }) => request.hint);

  beforeEach(async () => {
    loop.start();
    await clock.settle();
    requests.length = 0;
  });

  test("is handed to the store as a hint, once", async () => {
    loop.wake("x");
    await clock.settle();
    loop.wake();
    await clock.settle();
    expect(hints()).toEqual(["x", undefined]);
  });

  test("is none where another comes before the claim asks", async () => {
    for (const [first, second] of [["x", "y"], ["x"], [undefined, "y"]]) {
      loop.wake(first);
      loop.wake(second);
      await clock.settle();
    }
    expect(hints()).toEqual([undefined, undefined, undefined]);
  });

  test("counts where it comes while a claim is in flight", async () => {
    const pending: Deferred<ClaimResult> = deferred();
    answer = () => pending.promise;
    loop.wake("x");
    await clock.settle();
    loop.wake("y");
    answer = () => none;
    pending.resolve(none);
    await clock.settle();
    expect(hints()).toEqual(["x", "y"]);
  });

  test("is none while more may wait than the last claim brought", async () => {
    const claimed = backlog(100);
    loop.wake();
    await clock.settle();
    loop.wake("x");
    slots.free(kind, claimed[0] as string);
    await clock.settle();
    expect(hints()).toEqual([undefined, undefined]);
  });

  test("is none after a claim that failed: what that one asked for is still to be found", async () => {
    const pending: Deferred<ClaimResult> = deferred();
    answer = () => pending.promise;
    loop.wake("x");
    await clock.settle();
    loop.wake("y");
    answer = () => none;
    pending.reject(new VenturiError("database", "gone"));
    await clock.advance(10_000);
    expect(hints().slice(0, 2)).toEqual(["x", undefined]);
  });

  test("puts off no look at everything", async () => {
    for (let n = 0; n < 29; n += 1) {
      await clock.advance(1_000);
      loop.wake("x");
    }
    await clock.settle();
    const before = requests.length;
    await clock.advance(2_000);
    expect(times().slice(before)).toEqual([30_000]);
    expect(hints().slice(before)).toEqual([undefined]);
  });
});

describe("a due job that cannot be had", () => {
  test("is looked for again after 20 ms, doubling to a second", async () => {
    answer = () => ({ ...none, blocked: true });
    loop.start();
    await clock.advance(3_300);
    expect(times()).toEqual([0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260]);
  });

  test("is looked for as gently where the store only says that it is due now", async () => {
    answer = () => ({ ...none, waitMs: 0 });
    loop.start();
    await clock.advance(1_000);
    expect(requests.length).toBeLessThanOrEqual(7);
  });

  test("once it could be had, the waits start again", async () => {
    answer = () => ({ ...none, blocked: requests.length !== 3 });
    loop.start();
    await clock.advance(60);
    loop.wake();
    await clock.advance(20);
    expect(times()).toEqual([0, 20, 60, 60, 80]);
  });
});

describe("when the database fails", () => {
  const outage = () =>
    new VenturiError("database", "gone", { isRetryable: true, sqlState: "57P01" });

  test("it never gives up: tries grow apart to four seconds at most", async () => {
    answer = () => {
      throw outage();
    };
    loop.start();
    await clock.advance(10_000);
    expect(requests.length).toBeLessThanOrEqual(8);
    await clock.advance(600_000);
    answer = () => none;
    const before = requests.length;
    await clock.advance(4_000);
    expect(requests.length).toBeGreaterThan(before);
  });

  test("with a shorter pollMax tries are no further apart than that", async () => {
    loopWith({ pollMaxMs: 500 });
    answer = () => {
      throw outage();
    };
    loop.start();
    await clock.advance(10_000);
    const gaps = times().map((at, index) => at - (times()[index - 1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(500);
  });

  test("a wake-up cuts the wait short, a storm of them makes no hot loop", async () => {
    answer = () => {
      throw outage();
    };
    loop.start();
    await clock.advance(9_000);
    const before = requests.length;
    for (let i = 0; i < 1_000; i += 1) {
      loop.wake();
      await clock.advance(1);
    }
    expect(requests.length - before).toBeGreaterThanOrEqual(2);
    expect(requests.length - before).toBeLessThanOrEqual(5);
  });

  test("a wake-up is followed at once where the error is 250 ms old, and then if it is not", async () => {
    answer = () => {
      throw outage();
    };
    loop.start();
    await clock.advance(9_000);
    const last = times().at(-1) ?? 0;
    loop.wake();
    await clock.settle();
    const first = Math.max(9_000, last + 250);
    await clock.advance(first - 9_000);
    expect(times().at(-1)).toBe(first);
    await clock.advance(10);
    loop.wake();
    await clock.advance(239);
    expect(times().at(-1)).toBe(first);
    await clock.advance(1);
    expect(times().at(-1)).toBe(first + 250);
  });

  test("after a lost answer, what it may have claimed is looked for before the next claim", async () => {
    const order: string[] = [];
    answerLost = async () => {
      order.push("look");
      if (order.length === 1) throw outage();
      return true;
    };
    answer = () => {
      order.push("claim");
      if (order.length === 1) {
        order.length = 0;
        throw outage();
      }
      return none;
    };
    loop.start();
    await clock.advance(5_000);
    expect(order).toEqual(["look", "look", "claim"]);
  });

  test("a while later it is looked for once more: the claim may have been carried out after the first look", async () => {
    let looks = 0;
    answerLost = async () => {
      looks += 1;
      return true;
    };
    loopWith({ pollMaxMs: 60_000 });
    answer = () => {
      answer = () => none;
      throw outage();
    };
    loop.start();
    await clock.advance(5_000);
    expect(looks).toBe(1);
    expect(loop.mayHoldUnknown).toBe(true);
    const answeredAt = requests.at(-1)?.at ?? 0;
    await clock.advance(9_999 + answeredAt);
    expect(looks).toBe(1);
    await clock.advance(1);
    expect(looks).toBe(2);
    expect(loop.mayHoldUnknown).toBe(false);
    await clock.advance(600_000);
    expect(looks).toBe(2);
  });

  test("also while all slots are busy, and nothing could be claimed", async () => {
    const looks: number[] = [];
    answerLost = async () => {
      looks.push(clock.now() - start);
      return true;
    };
    answer = () => {
      backlog(100);
      throw outage();
    };
    loop.start();
    await clock.advance(60_000);
    expect(limits()).toEqual([4, 4]);
    expect(looks).toHaveLength(2);
    expect((looks[1] ?? 0) - (looks[0] ?? 0)).toBe(15_000);
  });

  test("at once where a claim was waited for when it was due, and once more a while after that was answered", async () => {
    const looks: number[] = [];
    answerLost = async () => looks.push(clock.now() - start) > 0;
    loopWith({ pollMaxMs: 60_000 });
    const slow = deferred<ClaimResult>();
    answer = () => {
      answer = () => slow.promise;
      throw outage();
    };
    loop.start();
    await clock.advance(30_000);
    expect(looks).toHaveLength(1);
    // What the claims that were given up had waited for is over: they are carried out about now.
    answer = () => none;
    slow.resolve(none);
    await clock.advance(14_999);
    expect(looks.slice(1)).toEqual([30_000]);
    expect(loop.mayHoldUnknown).toBe(true);
    await clock.advance(1);
    expect(looks.slice(1)).toEqual([30_000, 45_000]);
    expect(loop.mayHoldUnknown).toBe(false);
  });

  test("as long as something could not be undone, it is looked for again", async () => {
    const looks: number[] = [];
    answerLost = async () => looks.push(clock.now() - start) > 3;
    answer = () => {
      answer = () => none;
      throw outage();
    };
    loop.start();
    await clock.advance(300_000);
    const waits = looks.slice(1).map((at, index) => Math.round(at - (looks[index] ?? 0)));
    expect(waits).toEqual([15_000, 15_000, 15_000]);
    expect(loop.mayHoldUnknown).toBe(false);
  });

  test("what was found is not claimed before it has been handed back", async () => {
    answerLost = async () => {
      excluded.push("x");
      return true;
    };
    answer = () => {
      answer = () => none;
      throw outage();
    };
    loop.start();
    await clock.advance(5_000);
    expect(requests.map(({ request }) => request.exclude)).toEqual([undefined, ["x"]]);
  });
});

describe("a stop", () => {
  test("no claim goes out afterwards, whatever happens", async () => {
    loop.start();
    await clock.settle();
    await loop.stop();
    loop.wake();
    loop.roomMade();
    await clock.advance(120_000);
    expect(requests).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  test("ends the wait for the second look after a lost answer, and says that there may be something", async () => {
    answer = () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    loop.start();
    await clock.settle();
    await loop.stop();
    expect(clock.pending).toBe(0);
    expect(loop.mayHoldUnknown).toBe(true);
    await clock.advance(15_000);
    await loop.lookForUnknown();
    expect(loop.mayHoldUnknown).toBe(false);
  });

  test("leaves no timer where the claim in flight fails", async () => {
    const pending: Deferred<ClaimResult> = deferred();
    answer = () => pending.promise;
    loop.start();
    await clock.settle();
    const stopped = loop.stop();
    pending.reject(new VenturiError("database", "gone", { isRetryable: true }));
    await stopped;
    await clock.settle();
    expect(clock.pending).toBe(0);
    expect(loop.mayHoldUnknown).toBe(true);
  });

  test("waits for the claim in flight, whose jobs are handed on", async () => {
    const pending: Deferred<ClaimResult> = deferred();
    answer = () => pending.promise;
    loop.start();
    await clock.settle();
    const stopped = loop.stop();
    pending.resolve({ ...none, jobs: jobs(2) });
    await stopped;
    expect(batches).toEqual([2]);
    await clock.advance(120_000);
    expect(requests).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});

test("jobs that must not be claimed are named to the store", async () => {
  loop.start();
  await clock.settle();
  excluded.push("x");
  loop.wake();
  await clock.settle();
  expect(requests.map(({ request }) => request.exclude)).toEqual([undefined, ["x"]]);
});
