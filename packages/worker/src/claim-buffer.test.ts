import { beforeEach, expect, test } from "vitest";
import { type Buffered, ClaimBuffer } from "./claim-buffer.ts";
import { ManualClock } from "./testing/manual-clock.ts";

interface TestRun extends Buffered {
  readonly name: string;
}

let clock: ManualClock;
let overdue: string[];

beforeEach(() => {
  clock = new ManualClock();
  overdue = [];
});

function bufferOf(isAuto: boolean): ClaimBuffer<TestRun> {
  return new ClaimBuffer<TestRun>({
    clock,
    isAuto,
    onOverdue: (runs) => overdue.push(...runs.map(({ name }) => name)),
  });
}

/** A run whose claim took 20 ms to be answered. */
function runOf(name: string, leaseMs = 900_000): TestRun {
  return { name, leaseMs, receivedAt: clock.now(), leaseEndsAt: clock.now() - 20 + leaseMs };
}

test("gives out what it was given, first come first", () => {
  const buffer = bufferOf(true);
  for (const name of ["a", "b", "c"]) buffer.push(runOf(name));
  expect(buffer.shift()?.name).toBe("a");
  buffer.push(runOf("d"));
  expect(buffer.size).toBe(3);
  expect(buffer.waiting().map(({ name }) => name)).toEqual(["b", "c", "d"]);
  expect([1, 2, 3, 4].map(() => buffer.shift()?.name)).toEqual(["b", "c", "d", undefined]);
});

test("lets go of one, or of all", () => {
  const buffer = bufferOf(true);
  const runs = ["a", "b", "c"].map((name) => runOf(name));
  for (const run of runs) buffer.push(run);
  const [a, b] = runs as [TestRun, TestRun];
  buffer.shift();
  expect(buffer.remove(b)).toBe(true);
  expect(buffer.remove(a)).toBe(false);
  expect(buffer.takeAll().map(({ name }) => name)).toEqual(["c"]);
  expect(buffer.size).toBe(0);
});

test("nothing is kept for more than a second where the worker decided to claim ahead", async () => {
  const buffer = bufferOf(true);
  buffer.push(runOf("a"));
  buffer.watch();
  await clock.advance(500);
  buffer.push(runOf("b"));
  buffer.watch();
  await clock.advance(499);
  expect(overdue).toEqual([]);
  await clock.advance(1);
  expect(overdue).toEqual(["a"]);
  expect(buffer.size).toBe(1);
  await clock.advance(500);
  expect(overdue).toEqual(["a", "b"]);
});

test.each([true, false])("nothing is kept for more than a third of its lease", async (isAuto) => {
  const buffer = bufferOf(isAuto);
  buffer.push(runOf("a", 1_500));
  buffer.watch();
  await clock.advance(479);
  expect(overdue).toEqual([]);
  await clock.advance(1);
  expect(overdue).toEqual(["a"]);
});

test("no timer is set where nothing waits, nor a second one for what comes later", () => {
  const buffer = bufferOf(true);
  buffer.push(runOf("a"));
  buffer.shift();
  buffer.watch();
  expect(clock.pending).toBe(0);
  for (const name of ["b", "c"]) {
    buffer.push(runOf(name));
    buffer.watch();
  }
  expect(clock.pending).toBe(1);
  buffer.push(runOf("d", 1_000));
  buffer.watch();
  expect(clock.pending).toBe(1);
});

test("a short lease behind a long one is not kept longer for it", async () => {
  const buffer = bufferOf(false);
  buffer.push(runOf("long"));
  buffer.watch();
  buffer.push(runOf("short", 1_500));
  buffer.watch();
  await clock.advance(480);
  expect(overdue).toEqual(["short"]);
  expect(buffer.waiting().map(({ name }) => name)).toEqual(["long"]);
  await clock.advance(300_000);
  expect(overdue).toEqual(["short", "long"]);
});

test("a number of jobs claimed ahead is kept for longer than a second", async () => {
  const buffer = bufferOf(false);
  buffer.push(runOf("a"));
  buffer.watch();
  await clock.advance(299_979);
  expect(overdue).toEqual([]);
  await clock.advance(1);
  expect(overdue).toEqual(["a"]);
});

test("leaves no timer behind when it is stopped", async () => {
  const buffer = bufferOf(true);
  buffer.push(runOf("a"));
  buffer.watch();
  buffer.stop();
  await clock.advance(10_000);
  expect(overdue).toEqual([]);
});
