import { beforeEach, describe, expect, test } from "vitest";
import { type Leased, LeaseKeeper } from "./lease-keeper.ts";
import { ManualClock } from "./testing/manual-clock.ts";

interface TestRun extends Leased {
  readonly name: string;
}

let clock: ManualClock;
let events: string[];
let keeper: LeaseKeeper<TestRun>;

beforeEach(() => {
  clock = new ManualClock();
  events = [];
  const note = (what: string) => (run: TestRun) => {
    events.push(`${run.name} ${what}`);
  };
  keeper = new LeaseKeeper({ clock, onEnding: note("ending"), onOverdue: note("overdue") });
});

/** A run whose claim took 20 ms to be answered. */
function runOf(name: string, leaseMs: number): TestRun {
  const leaseEndsAt = clock.now() - 20 + leaseMs;
  return { name, leaseMs, leaseEndsAt, overdueAt: leaseEndsAt + 20 };
}

test("a lease is announced a tenth before its end, counted from before the claim was sent", async () => {
  keeper.watch(runOf("a", 1_000));
  await clock.advance(879);
  expect(events).toEqual([]);
  await clock.advance(1);
  expect(events).toEqual(["a ending"]);
});

test("a long lease is announced one second before its end", async () => {
  keeper.watch(runOf("a", 900_000));
  await clock.advance(898_979);
  expect(events).toEqual([]);
  await clock.advance(1);
  expect(events).toEqual(["a ending"]);
});

test("a run is overdue when its lease has ended for certain, counted from the claim's answer", async () => {
  keeper.watch(runOf("a", 1_000));
  await clock.advance(999);
  expect(events).toEqual(["a ending"]);
  await clock.advance(1);
  expect(events).toEqual(["a ending", "a overdue"]);
  await clock.advance(1_000_000);
  expect(events).toHaveLength(2);
});

test("a run whose handler has ended is not watched any longer", async () => {
  const run = runOf("a", 1_000);
  keeper.watch(run);
  await clock.advance(500);
  keeper.release(run);
  await clock.advance(10_000);
  expect(events).toEqual([]);
});

test("a shorter lease that comes later is announced first", async () => {
  keeper.watch(runOf("long", 60_000));
  await clock.advance(100);
  keeper.watch(runOf("short", 1_000));
  await clock.advance(2_000);
  expect(events).toEqual(["short ending", "short overdue"]);
  await clock.advance(60_000);
  expect(events).toEqual(["short ending", "short overdue", "long ending", "long overdue"]);
});

test("what comes after all others are over is watched as well", async () => {
  keeper.watch(runOf("a", 1_000));
  await clock.advance(2_000);
  const released = runOf("b", 1_000);
  keeper.watch(released);
  keeper.release(released);
  await clock.advance(2_000);
  keeper.watch(runOf("c", 1_000));
  await clock.advance(2_000);
  expect(events).toEqual(["a ending", "a overdue", "c ending", "c overdue"]);
});

describe("there is one timer", () => {
  test("for any number of runs", async () => {
    for (let i = 0; i < 1_000; i += 1) keeper.watch(runOf(`${i}`, 1_000 + i));
    expect(clock.pending).toBe(1);
    await clock.advance(3_000);
    expect(events).toHaveLength(2_000);
    expect(clock.pending).toBe(0);
  });

  test("and none after a stop", () => {
    keeper.watch(runOf("a", 1_000));
    keeper.stop();
    expect(clock.pending).toBe(0);
  });
});

test("a run that a callback releases is passed over", async () => {
  const [a, b] = [runOf("a", 1_000), runOf("b", 1_000)];
  keeper = new LeaseKeeper({
    clock,
    onEnding: (run) => {
      events.push(run.name);
      keeper.release(run === a ? b : a);
    },
    onOverdue: () => undefined,
  });
  for (const run of [a, b]) keeper.watch(run);
  await clock.advance(2_000);
  expect(events).toEqual(["a"]);
});
