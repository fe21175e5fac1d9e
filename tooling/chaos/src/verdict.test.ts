import { expect, test } from "vitest";
import type { Diaries } from "./diaries.ts";
import { compare } from "./verdict.ts";

const ID = "01JDPW0000000000000000000A";

interface Case {
  readonly journal: readonly string[];
  readonly started: readonly number[];
  readonly ended: Readonly<Record<number, string>>;
  readonly kind?: string;
}

/** One job, whose runs the journal and the diaries know by number. */
function verdictOf({ journal, started, ended, kind = "plain" }: Case) {
  const entries = journal.map((entry) => {
    const [run = "", outcome = ""] = entry.split(" ");
    return { id: ID, run: Number(run), outcome, at: 0, worker: "w" };
  });
  const diaries: Diaries = {
    tried: new Map([[ID, kind]]),
    accepted: new Set([ID]),
    started: new Map(
      started.map((run) => [`${ID} ${run}`, started.filter((other) => other === run).length]),
    ),
    ended: new Map(Object.entries(ended).map(([run, how]) => [`${ID} ${run}`, how])),
  };
  return compare(entries, diaries);
}

test("a job that failed, paused and completed has nothing to answer for", () => {
  const ended = { 1: "failed", 2: "paused", 3: "completed" };
  expect(verdictOf({ journal: ["1 r", "2 p", "3 c"], started: [1, 2, 3], ended })).toEqual({
    twice: 0,
    repeated: 0,
    problems: [],
  });
});

test("a handler may come to its end again when its earlier run was lost", () => {
  const ended = { 1: "completed", 2: "completed" };
  expect(verdictOf({ journal: ["1 s", "2 c"], started: [1, 2], ended })).toMatchObject({
    repeated: 1,
    problems: [],
  });
});

test("a handler that completes in its transaction may never come to its end", () => {
  const run = { journal: ["1 c"], started: [1], ended: {}, kind: "writing" };
  expect(verdictOf(run).problems).toEqual([]);
});

test.each<[string, Case]>([
  ["settled twice", { journal: ["1 c", "1 c"], started: [1], ended: { 1: "completed" } }],
  ["settled as c", { journal: ["1 c"], started: [1], ended: { 1: "failed" } }],
  ["settled as c", { journal: ["1 c"], started: [1], ended: {} }],
  ["the journal says r", { journal: ["1 r"], started: [1], ended: { 1: "completed" } }],
  ["started 2 times", { journal: ["1 c"], started: [1, 1], ended: { 1: "completed" } }],
  ["knows nothing of it", { journal: [], started: [1], ended: {} }],
])("a contradiction is told: %s", (problem, contradiction) => {
  expect(verdictOf(contradiction).problems).toContainEqual(expect.stringContaining(problem));
});
