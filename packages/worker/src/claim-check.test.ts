import type { StaleClaim } from "@venturi/core";
import { beforeEach, expect, test } from "vitest";
import { ClaimCheck } from "./claim-check.ts";
import type { Run } from "./run.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { type LogRecord, recordingLogger } from "./testing/recording-logger.ts";
import { type Deferred, deferred } from "./testing/signals.ts";
import { idOf, staleClaim } from "./testing/stale-claims.ts";

const me = 1;

interface Found {
  readonly claims: readonly StaleClaim[];
}

let answers: Deferred<Found>[];
let runs: Run[];
let lost: string[];
let records: LogRecord[];
let check: ClaimCheck;

beforeEach(() => {
  answers = [];
  runs = ["a", "b"].map(runOf);
  lost = [];
  const recording = recordingLogger();
  records = recording.records;
  check = new ClaimCheck({
    store: {
      findStale: () => {
        const answer = deferred<Found>();
        answers.push(answer);
        return answer.promise;
      },
    },
    worker: me,
    clock: new ManualClock(),
    logger: recording.logger,
    claims: () => runs,
    onLost: (run) => lost.push(run.job.id),
  });
});

function runOf(name: string): Run {
  return { job: { id: idOf(name), runCount: 1 }, hasEnded: false, completion: "none" } as Run;
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

async function answer(claims: readonly StaleClaim[] | Error): Promise<void> {
  const last = answers.at(-1);
  if (claims instanceof Error) last?.reject(claims);
  else last?.resolve({ claims });
  await settled();
}

test("runs whose claims the store does not list have lost them", async () => {
  check.check();
  await answer([staleClaim("a", me)]);
  expect(lost).toEqual([idOf("b")]);
});

test("a run that has ended meanwhile has lost nothing, nor one that has been completed in a transaction", async () => {
  check.check();
  Object.assign(runs[0] as Run, { hasEnded: true });
  Object.assign(runs[1] as Run, { completion: "written" });
  await answer([]);
  expect(lost).toEqual([]);
});

test("where the worker holds more claims than were asked for, it asks for more until it has all", async () => {
  check.check();
  const others = Array.from({ length: 1_002 }, (_, n) => staleClaim(`other ${n}`, me));
  await answer(others);
  expect(lost).toEqual([]);
  await answer([...others, staleClaim("a", me)]);
  expect(answers).toHaveLength(2);
  expect(lost).toEqual([idOf("b")]);
});

test("a reason that comes while it looks has it look once more, however many there are", async () => {
  check.check();
  for (let n = 0; n < 10; n += 1) check.check();
  expect(answers).toHaveLength(1);
  await answer(["a", "b"].map((name) => staleClaim(name, me)));
  expect(answers).toHaveLength(2);
  await answer([staleClaim("a", me)]);
  expect(answers).toHaveLength(2);
  expect(lost).toEqual([idOf("b")]);
});

test("a look that fails is made again once the store has been heard of, and is told of once", async () => {
  check.check();
  for (let n = 1; n <= 10; n += 1) {
    await answer(new Error("terminating connection"));
    expect(answers).toHaveLength(n);
    check.checkIfDue();
    expect(answers).toHaveLength(n + 1);
  }
  expect(records).toHaveLength(1);
  await answer([]);
  expect(lost).toEqual(["a", "b"].map(idOf));
  check.checkIfDue();
  expect(answers).toHaveLength(11);
});

test("what is answered after a stop says nothing of anybody", async () => {
  check.check();
  const stopped = check.stop();
  await answer([]);
  await stopped;
  expect(lost).toEqual([]);
});

test("without a reason it does not look, nor after a stop", async () => {
  check.checkIfDue();
  expect(answers).toHaveLength(0);
  check.check();
  const stopped = check.stop();
  await answer(new Error("aborted"));
  await stopped;
  check.check();
  expect(answers).toHaveLength(1);
  expect(records).toEqual([]);
  expect(lost).toEqual([]);
});
