import {
  Backoff,
  type FindStaleRequest,
  type Logger,
  type Recovery,
  type StaleClaim,
  VenturiError,
} from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import type { Silent } from "./heartbeat.ts";
import { RecoveryService } from "./recovery.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { type LogRecord, recordingLogger } from "./testing/recording-logger.ts";
import { deferred } from "./testing/signals.ts";
import { idOf, staleClaim } from "./testing/stale-claims.ts";

const me = 1;
const other = 2;

let clock: ManualClock;
let start: number;
let records: LogRecord[];
let logger: Logger;
/** What the store holds of stale claims. */
let stale: StaleClaim[];
/** What a look waits for. */
let lookedFor: Promise<void>;
let scans: { readonly at: number; readonly request: FindStaleRequest }[];
let recovered: Recovery[];
/** What was told of as recovered, and how often it was said that jobs are pending again. */
let told: StaleClaim[];
let pendingAgain: number;
let ownDone: string[];
let stillHeld: Set<string>;
/** How often the store was asked which claims of its own it still holds. */
let askedForHeld: number;
let refuse: (recoveries: readonly Recovery[]) => void;
let apply: (recovery: Recovery) => boolean;
let service: RecoveryService;

beforeEach(() => {
  ({ records, logger } = recordingLogger());
  clock = new ManualClock();
  start = clock.now();
  stale = [];
  lookedFor = Promise.resolve();
  scans = [];
  recovered = [];
  told = [];
  pendingAgain = 0;
  ownDone = [];
  stillHeld = new Set();
  askedForHeld = 0;
  refuse = () => undefined;
  apply = () => true;
  service = recovery();
});

function recovery({ sweepsFirst = false, random = (): number => 0.5 } = {}): RecoveryService {
  return new RecoveryService({
    store: {
      findStale: async (request) => {
        scans.push({ at: clock.now() - start, request });
        await lookedFor;
        const wanted = stale.filter(({ holder, overdue }) =>
          request.holders.some(
            ({ worker, overdueOnly }) => worker === holder && (overdue || !overdueOnly),
          ),
        );
        return { claims: wanted.slice(0, request.limit) };
      },
      recover: async ({ recoveries }) => {
        refuse(recoveries);
        return {
          applied: recoveries.map((recovery) => {
            if (!apply(recovery)) return false;
            recovered.push(recovery);
            stale = stale.filter(({ jobId }) => jobId !== recovery.jobId);
            return true;
          }),
        };
      },
    },
    worker: me,
    clock,
    logger,
    jitterFraction: 0,
    sweepsFirst,
    random,
    backoffOf: () => new Backoff(),
    onRecovery: (claim) => told.push(claim),
    onRecovered: () => {
      pendingAgain += 1;
    },
    stillHeld: async (claims) => {
      askedForHeld += 1;
      return claims.filter(({ jobId }) => stillHeld.has(jobId));
    },
    onOwnDone: ({ jobId }) => ownDone.push(jobId),
  });
}

const claimOf = (name: string, overrides: Partial<StaleClaim> = {}) =>
  staleClaim(name, other, overrides);

function silent({ dead = true, isHeardLate = false, silentMs = 40_000 } = {}) {
  const mayBeTakenFrom = dead && !isHeardLate;
  const worker: Silent = { worker: other, name: "other", silentMs, dead, mayBeTakenFrom };
  service.report({ silent: [worker], others: 0 });
}

/** Who has been silent for how long, of so many others that are not dead. */
function suspects(silentMs: Readonly<Record<number, number>>, others: number) {
  const silent = Object.entries(silentMs).map(([worker, silentMs]) => {
    return { worker: Number(worker), name: worker, silentMs, dead: false, mayBeTakenFrom: false };
  });
  service.report({ silent, others });
}

const hear = (others: number) => service.report({ silent: [], others });
const scanned = () => scans.map(({ at }) => Math.round(at));
const holdersOf = (index: number) => scans[index]?.request.holders;

describe("whose claims are looked for", () => {
  test("all of a dead worker's", async () => {
    await service.start();
    stale = [claimOf("a", { overdue: false })];
    silent();
    await clock.advance(1_000);
    expect(holdersOf(1)).toEqual([{ worker: other, overdueOnly: false }]);
    expect(recovered.map(({ jobId }) => jobId)).toEqual([idOf("a")]);
  });

  test("only the overdue ones of a suspect, and of a dead one soon after an outage", async () => {
    await service.start();
    silent({ dead: false });
    await clock.advance(1_000);
    silent({ isHeardLate: true });
    await clock.advance(5_000);
    for (const index of [1, 2])
      expect(holdersOf(index)).toEqual([{ worker: other, overdueOnly: true }]);
  });

  test("those of a suspect again a third of its silence later, when what it claimed after its last beat is overdue, and then every five seconds", async () => {
    await service.start();
    await clock.advance(10_000);
    silent({ dead: false, silentMs: 6_000 });
    await clock.advance(15_000);
    expect(scanned()).toEqual([0, 10_000, 12_000, 14_667, 18_222, 22_963]);
  });

  test("those of a suspect no sooner because beats go on about it, and not at all once it has beaten", async () => {
    await service.start();
    await clock.advance(10_000);
    for (let beat = 0; beat < 40; beat += 1) {
      silent({ dead: false, silentMs: 60_000 + 500 * beat });
      await clock.advance(500);
    }
    expect(scanned()).toEqual([0, 10_000, 15_000, 20_000, 25_000, 30_000]);
    hear(1);
    await clock.advance(20_000);
    expect(scanned()).toHaveLength(6);
  });

  test("those of several that have become suspect together again for each, at its own time", async () => {
    await service.start();
    await clock.advance(10_000);
    suspects({ 2: 9_000, 3: 6_000 }, 2);
    await clock.advance(3_000);
    expect(scanned()).toEqual([0, 10_000, 12_000, 13_000]);
  });

  test("all of a suspect's as soon as it is dead", async () => {
    await service.start();
    silent({ dead: false });
    await clock.advance(2_000);
    silent();
    await clock.settle();
    expect(scanned()).toEqual([0, 1_000, 2_000]);
    expect(holdersOf(2)).toEqual([{ worker: other, overdueOnly: false }]);
  });

  test("those of one that has gone silent while others were looked at, at once", async () => {
    await service.start();
    await clock.advance(10_000);
    const found = deferred();
    lookedFor = found.promise;
    suspects({ 2: 60_000 }, 1);
    await clock.settle();
    suspects({ 2: 60_000, 3: 60_000 }, 2);
    found.resolve();
    await clock.advance(1_000);
    expect(scanned()).toEqual([0, 10_000, 11_000]);
    expect(holdersOf(2)).toContainEqual({ worker: 3, overdueOnly: true });
  });

  test("a dead worker's no more once all are recovered, until it has beaten again", async () => {
    await service.start();
    stale = [claimOf("a")];
    silent();
    await clock.advance(2_000);
    expect(scans).toHaveLength(2);
    silent();
    await clock.advance(20_000);
    expect(scans).toHaveLength(2);
    service.report({ silent: [], others: 0 });
    silent();
    await clock.advance(2_000);
    expect(scans).toHaveLength(3);
  });

  test("claims without a worker at the start, and then in a slow sweep", async () => {
    await service.start();
    await clock.advance(125_000);
    expect(scans.map(({ at, request }) => [at, request.orphans])).toEqual([
      [0, true],
      [60_000, true],
      [120_000, true],
    ]);
  });
});

test("of its own claims the slow sweep takes only overdue ones: the others are held by whoever sweeps", async () => {
  stale = [
    claimOf("a", { holder: me, overdue: true }),
    claimOf("b", { holder: me, overdue: false }),
  ];
  await service.start();
  expect(holdersOf(0)).toEqual([{ worker: me, overdueOnly: true }]);
  expect(recovered.map(({ jobId }) => jobId)).toEqual([idOf("a")]);
});

test("the slow sweep takes no more than a hundredth of the time", async () => {
  const found = deferred();
  lookedFor = found.promise;
  const started = service.start();
  await clock.advance(2_000);
  found.resolve();
  await started;
  await clock.advance(199_999);
  expect(scans).toHaveLength(1);
  await clock.advance(1);
  expect(scans).toHaveLength(2);
});

test("of what a look found only what was recovered is told, and nothing where nothing was", async () => {
  await service.start();
  stale = ["a", "b", "c"].map((name) => claimOf(name));
  apply = ({ jobId }) => jobId === idOf("b");
  silent();
  await clock.advance(1_000);
  expect(told.map(({ jobId }) => jobId)).toEqual([idOf("b")]);
  expect(pendingAgain).toBe(1);
  await clock.advance(10_000);
  expect(scans.length).toBeGreaterThan(2);
  expect(told).toHaveLength(1);
  expect(pendingAgain).toBe(1);
});

describe("with others that live, the slow sweep", () => {
  test("begins at some moment of a round, in which each of them sweeps once", async () => {
    hear(3);
    await service.start();
    await clock.advance(600_000);
    expect(scanned()).toEqual([120_000, 360_000, 600_000]);
  });

  test("is not waited for longer because others have come", async () => {
    await service.start();
    hear(9);
    await clock.advance(60_000);
    expect(scanned()).toEqual([0, 60_000]);
  });

  test("takes over from those that have gone", async () => {
    hear(99);
    await service.start();
    await clock.advance(1_000);
    hear(0);
    await clock.advance(30_000);
    // What was left of its wait of half a round of 100, by a hundredth.
    expect(scanned()).toEqual([30_990]);
  });

  test("takes over its part of the work of those that have gone", async () => {
    hear(99);
    await service.start();
    await clock.advance(1_000_000);
    hear(49);
    await clock.advance(1_000_000);
    // It would have come after half a round of 100, at 3,000,000: what was left is halved.
    expect(scanned()).toEqual([2_000_000]);
  });

  test("comes no more often because one other comes and goes", async () => {
    hear(99);
    await service.start();
    for (let minute = 0; minute < 1_000; minute += 1) {
      hear(100);
      await clock.advance(5_000);
      hear(99);
      await clock.advance(55_000);
    }
    expect(scanned()).toHaveLength(10);
  });

  test("is the only look that the start waits for: it looks at those who are silent as well", async () => {
    silent();
    const found = deferred();
    lookedFor = found.promise;
    let isStarted = false;
    const starting = service.start().then(() => {
      isStarted = true;
    });
    await clock.settle();
    expect(scans.map(({ request }) => request.orphans)).toEqual([true]);
    expect(scans[0]?.request.holders).toHaveLength(2);
    expect(isStarted).toBe(false);
    found.resolve();
    await starting;
    expect(scans).toHaveLength(1);
  });

  test("comes first where it was asked to", async () => {
    service = recovery({ sweepsFirst: true });
    hear(99);
    await service.start();
    expect(scanned()).toEqual([0]);
  });
});

describe("with others that live, a silent worker", () => {
  /** How often each of so many looks in a minute at one that has been silent for a while, and at first how late. */
  async function looks(lookers: number) {
    const counts: number[] = [];
    const firsts: number[] = [];
    for (let n = 0; n < lookers; n += 1) {
      service = recovery({ random: () => (n + 0.5) / lookers });
      hear(lookers);
      await service.start();
      const before = scans.length;
      const at = clock.now() - start;
      for (let beat = 0; beat < 240; beat += 1) {
        suspects({ [other]: 60_000 + 5_000 * beat }, lookers);
        await clock.advance(5_000);
      }
      await service.stop();
      const own = scans.slice(before).filter(({ request }) => !request.orphans);
      counts.push(own.length / 20);
      firsts.push((own[0]?.at ?? Number.NaN) - at);
    }
    return { perMinute: counts.reduce((a, b) => a + b), firstMs: Math.min(...firsts) };
  }

  test.each([1, 5, 20])(
    "is looked at soon, and then every five seconds or so by all %i of them together",
    async (lookers) => {
      const { perMinute, firstMs } = await looks(lookers);
      expect(firstMs).toBeLessThan(250);
      expect(perMinute).toBeGreaterThan(6);
      expect(perMinute).toBeLessThan(36);
    },
  );

  test("is looked at for the first time by one of them after the other, 250 ms apart on average", async () => {
    await service.start();
    await clock.advance(10_000);
    // Of five others one is silent, so that five look, this one in the middle of them.
    suspects({ [other]: 60_000 }, 5);
    await clock.advance(499);
    expect(scans).toHaveLength(1);
    await clock.advance(1);
    expect(scans).toHaveLength(2);
  });

  test("that was killed long ago and may be silent for ever does not make the living look more often", async () => {
    service = recovery({ random: () => 0.5 });
    hear(10);
    await service.start();
    const before = scans.length;
    const killed = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [100 + n, 3_600_000]));
    for (let beat = 0; beat < 12; beat += 1) {
      suspects({ ...killed, [other]: 60_000 }, 10);
      await clock.advance(5_000);
    }
    const own = scans.slice(before).filter(({ request }) => !request.orphans);
    expect(own.length).toBeLessThan(4);
  });
});

test("a dead worker's claims that a slow sweep has recovered are not looked for again", async () => {
  stale = [claimOf("a")];
  service = recovery({ sweepsFirst: true });
  silent();
  await service.settled();
  await service.start();
  await clock.advance(59_000);
  expect(recovered).toHaveLength(1);
  const before = scans.length;
  await clock.advance(600);
  expect(scans).toHaveLength(before);
  expect(before).toBeLessThanOrEqual(2);
});

describe("how often", () => {
  test("at most one scan a second, whatever is reported", async () => {
    await service.start();
    stale = [claimOf("a")];
    apply = () => false;
    for (let i = 0; i < 100; i += 1) {
      silent();
      await clock.advance(50);
    }
    expect(scans.length).toBeLessThanOrEqual(7);
  });

  test("a slow sweep that fails is made again with growing waits, up to four seconds", async () => {
    lookedFor = Promise.reject(new VenturiError("database", "gone", { isRetryable: true }));
    lookedFor.catch(() => undefined);
    await service.start();
    await clock.advance(50_000);
    // A wait may be shortened by a quarter.
    expect(scans.length).toBeLessThan(22);
    lookedFor = Promise.resolve();
    const before = scans.length;
    await clock.advance(4_000);
    expect(scans.slice(before).map(({ request }) => request.orphans)).toEqual([true]);
  });

  test("a look that fails is made again with growing waits, up to four seconds", async () => {
    await service.start();
    lookedFor = Promise.reject(new VenturiError("database", "gone", { isRetryable: true }));
    lookedFor.catch(() => undefined);
    const before = scans.length;
    silent();
    await clock.advance(50_000);
    // A wait may be shortened by a quarter.
    expect(scans.length - before).toBeLessThan(22);
    lookedFor = Promise.resolve();
    stale = [claimOf("a")];
    await clock.advance(4_000);
    expect(recovered).toHaveLength(1);
  });

  test("2,500 stale claims are recovered in three scans, one a second", async () => {
    await service.start();
    stale = Array.from({ length: 2_500 }, (_, index) => claimOf(`${index}`));
    silent();
    await clock.advance(4_000);
    expect(recovered).toHaveLength(2_500);
    expect(scans.length).toBeLessThanOrEqual(5);
  });
});

describe("one bad row", () => {
  test("does not stop the others", async () => {
    await service.start();
    stale = Array.from({ length: 8 }, (_, index) => claimOf(`${index}`));
    refuse = (recoveries) => {
      if (recoveries.some(({ jobId }) => jobId === idOf("5"))) {
        throw new VenturiError("database", "integer out of range", { sqlState: "22003" });
      }
    };
    silent();
    await clock.advance(1_000);
    expect(recovered.map(({ jobId }) => jobId)).toEqual(
      ["0", "1", "2", "3", "4", "6", "7"].map(idOf),
    );
    expect(records.filter(({ level }) => level === "error")).toHaveLength(1);
    silent();
    await clock.advance(5_000);
    expect(records.filter(({ level }) => level === "error")).toHaveLength(1);
  });
});

test("a sweep gets past more bad rows than it reads at once, and does not try them again and again", async () => {
  service = recovery({ sweepsFirst: true });
  stale = Array.from({ length: 2_501 }, (_, index) => claimOf(`${index}`, { holder: me }));
  let tries = 0;
  refuse = (recoveries) => {
    tries += 1;
    if (recoveries.some(({ jobId }) => jobId !== idOf("2500")))
      throw new VenturiError("database", "not now", { sqlState: "P0001" });
  };
  await service.start();
  await clock.advance(50_000);
  expect(recovered.map(({ jobId }) => jobId)).toEqual([idOf("2500")]);
  expect(tries).toBeLessThan(2 * 2_501 + 10);
});

test("what the store has refused is tried once more with each slow sweep", async () => {
  await service.start();
  stale = [claimOf("a")];
  let tries = 0;
  refuse = () => {
    tries += 1;
    throw new VenturiError("database", "not now", { sqlState: "P0001" });
  };
  silent();
  await clock.advance(59_000);
  expect(tries).toBe(1);
  await clock.advance(60_000);
  expect(tries).toBe(2);
  refuse = () => undefined;
  await clock.advance(60_000);
  expect(recovered.map(({ jobId }) => jobId)).toEqual([idOf("a")]);
});

describe("what is said of claims that the store refuses to recover", () => {
  const errors = () => records.filter(({ level }) => level === "error");

  beforeEach(async () => {
    await service.start();
    refuse = () => {
      throw new VenturiError("database", "not now", { sqlState: "P0001" });
    };
  });

  test("is one record for all that are met together, which names some of them", async () => {
    stale = Array.from({ length: 500 }, (_, index) => claimOf(`${index}`));
    silent();
    await clock.advance(1_000);
    expect(errors()).toHaveLength(1);
    expect(errors()[0]?.fields).toMatchObject({ claims: 500, error: "not now" });
    expect(errors()[0]?.fields["jobIds"]).toHaveLength(10);
  });

  test("is not said again at every later look while they are refused", async () => {
    stale = [claimOf("a")];
    silent();
    await clock.advance(1_200_000);
    expect(errors()).toHaveLength(1);
    stale = [...stale, claimOf("b")];
    silent();
    await clock.advance(300_000);
    expect(errors().map(({ fields }) => fields["jobIds"])).toEqual([[idOf("a")], [idOf("b")]]);
  });

  test("nor at every try to recover claims of its own", async () => {
    stillHeld = new Set(["a", "b"].map(idOf));
    for (const name of ["a", "b"]) service.recoverOwn(claimOf(name, { holder: me }));
    await clock.advance(1_200_000);
    expect(errors().map(({ fields }) => fields["jobIds"])).toEqual([[idOf("a")], [idOf("b")]]);
    refuse = () => undefined;
    await clock.advance(60_000);
    expect(recovered).toHaveLength(2);
  });
});

test("claims are not refused one by one because nobody could log in", async () => {
  await service.start();
  stale = Array.from({ length: 8 }, (_, index) => claimOf(`${index}`));
  let tries = 0;
  refuse = () => {
    tries += 1;
    throw new VenturiError("database", "password authentication failed", { sqlState: "28P01" });
  };
  silent();
  await clock.advance(1_000);
  expect(tries).toBe(1);
  refuse = () => undefined;
  silent();
  await clock.advance(60_000);
  expect(recovered).toHaveLength(8);
});

describe("a claim of its own that has become overdue", () => {
  test("is recovered by id, without a scan", async () => {
    await service.start();
    service.recoverOwn(claimOf("a", { holder: me }));
    await clock.settle();
    expect(recovered).toMatchObject([{ jobId: idOf("a"), holder: me, outcome: "stale-recovered" }]);
    expect(scans).toHaveLength(1);
    expect(askedForHeld).toBe(0);
    expect(ownDone).toEqual([idOf("a")]);
  });

  test("is tried again while its row is locked, and given up when it is gone", async () => {
    await service.start();
    let tries = 0;
    apply = () => ++tries === 3;
    service.recoverOwn(claimOf("a", { holder: me }));
    await clock.advance(200);
    expect(recovered).toHaveLength(1);
    apply = () => false;
    service.recoverOwn(claimOf("b", { holder: me }));
    await clock.advance(60_000);
    expect(ownDone).toEqual(["a", "b"].map(idOf));
    expect(recovered).toHaveLength(1);
  });

  test("is left alone once its lease has been extended after all; others are not, nor another run of its job", async () => {
    await service.start();
    apply = () => false;
    const own = { holder: me, runCount: 2 };
    for (const claim of [
      claimOf("a", own),
      claimOf("a", { ...own, runCount: 1 }),
      claimOf("b", own),
    ])
      service.recoverOwn(claim);
    await clock.settle();
    service.forgetOwn(idOf("a"), 2);
    apply = () => true;
    await clock.advance(60_000);
    expect(recovered.map(({ jobId, runCount }) => [jobId, runCount])).toEqual([
      [idOf("a"), 1],
      [idOf("b"), 2],
    ]);
  });

  test("is given up when it could not be recovered for five seconds, in ten tries ever further apart", async () => {
    await service.start();
    const waitsMs: number[] = [];
    let triedAt = clock.now();
    apply = () => {
      waitsMs.push(clock.now() - triedAt);
      triedAt = clock.now();
      return false;
    };
    service.recoverOwn(claimOf("a", { holder: me }));
    await clock.advance(60_000);
    expect(waitsMs).toEqual([0, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000]);
    expect(ownDone).toEqual([idOf("a")]);
  });

  test("is kept and tried once a minute while the store says that it is held", async () => {
    await service.start();
    apply = () => false;
    stillHeld = new Set([idOf("a")]);
    let tries = 0;
    refuse = () => {
      tries += 1;
    };
    service.recoverOwn(claimOf("a", { holder: me }));
    await clock.advance(10_000);
    expect(tries).toBe(10);
    await clock.advance(300_000);
    expect(tries).toBe(15);
    expect(ownDone).toEqual([]);
    apply = () => true;
    await clock.advance(60_000);
    expect(ownDone).toEqual([idOf("a")]);
  });

  test("waits out an outage", async () => {
    await service.start();
    refuse = () => {
      throw new VenturiError("database", "gone", { isRetryable: true });
    };
    service.recoverOwn(claimOf("a", { holder: me }));
    await clock.advance(300_000);
    refuse = () => undefined;
    await clock.advance(4_000);
    expect(recovered).toHaveLength(1);
  });
});

test("at the backstop that the claim carried, a recovery is a death", async () => {
  await service.start();
  stale = [
    claimOf("a", { failureCount: 2, backstop: 3 }),
    claimOf("b", { failureCount: 2, backstop: null }),
  ];
  silent();
  await clock.advance(1_000);
  expect(recovered.map(({ outcome }) => outcome)).toEqual(["dead", "stale-recovered"]);
  expect(recovered[0]?.note).toMatch(/lease ended.*backstop of 3/);
});

test("a stop waits for the look on its way", async () => {
  const found = deferred();
  lookedFor = found.promise;
  void service.start();
  await clock.settle();
  let isStopped = false;
  const stopped = service.stop().then(() => {
    isStopped = true;
  });
  await clock.settle();
  expect(isStopped).toBe(false);
  found.resolve();
  await stopped;
  expect(clock.pending).toBe(0);
});

test("after a stop nothing is looked for and no timer is left, whatever is heard", async () => {
  await service.start();
  silent();
  await service.stop();
  expect(clock.pending).toBe(0);
  silent();
  service.recoverOwn(claimOf("a", { holder: me }));
  expect(clock.pending).toBe(0);
  await clock.advance(120_000);
  expect(scans).toHaveLength(1);
});
