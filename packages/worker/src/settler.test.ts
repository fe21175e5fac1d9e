import { type Settlement, type SettleVerdict, VenturiError } from "@venturi/core";
import { beforeEach, expect, test } from "vitest";
import { Run } from "./run.ts";
import { Settler } from "./settler.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { type LogRecord, recordingLogger } from "./testing/recording-logger.ts";

let clock: ManualClock;
let sent: (readonly Settlement[])[];
let answer: (settlement: Settlement) => SettleVerdict;
let events: string[];
let records: LogRecord[];
let settler: Settler;

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  answer = () => "applied";
  events = [];
  const recording = recordingLogger();
  records = recording.records;
  settler = new Settler({
    store: {
      settle: async ({ settlements }) => {
        sent.push(settlements);
        return { verdicts: settlements.map(answer) };
      },
    },
    worker: 1,
    clock,
    logger: recording.logger,
    refuse: ({ job }, note) => settlementOf(job.id, { outcome: "retried", note }),
    onSettled: ({ job }, outcome) => events.push(`${job.id} ${outcome}`),
    onLost: ({ job }) => events.push(`${job.id} lost`),
    onDropped: ({ job }) => events.push(`${job.id} dropped`),
    onProgress: () => undefined,
  });
});

function settlementOf(jobId: string, changes: Partial<Settlement> = {}): Settlement {
  const nothing = { carry: null, note: null, attachment: null, detail: null };
  const ended = { outcome: "completed", delayMs: 0, runAt: null } as const;
  return { jobId, runCount: 1, ...ended, ...nothing, ...changes };
}

/** A run that has ended, with a lease of a minute. */
function settle(id: string, changes: Partial<Settlement> = {}): Run {
  const job = { id, kind: "k", runCount: 1, leaseMs: 60_000, leaseExpiresAt: new Date(0) };
  const run = new Run(job as Run["job"], {} as Run["registration"], clock.now(), clock.now());
  settler.settle(run, settlementOf(id, changes));
  return run;
}

const ids = () => sent.map((settlements) => settlements.map(({ jobId }) => jobId).join(""));
const messages = (level: string) =>
  records.filter((record) => record.level === level).map(({ message }) => message);
const refusal = () => new VenturiError("database", "value too long", { sqlState: "22001" });

test("what the store has confirmed is told as it was settled, and a lost claim as lost", async () => {
  answer = ({ jobId }) => (jobId === "b" ? "lost" : "applied");
  settle("a", { outcome: "paused" });
  settle("b");
  await clock.settle();
  expect(events).toEqual(["a paused", "b lost"]);
  expect(messages("warn")).toEqual(["a run no longer held its claim, so its end was not written"]);
});

test("a settlement that was written by an earlier try is told as it was settled", async () => {
  answer = () => "done";
  settle("a", { outcome: "retried" });
  await clock.settle();
  expect(events).toEqual(["a retried"]);
});

test("a run that has been completed in a transaction is completed, whatever is settled for it", async () => {
  answer = () => "done";
  const run = settle("a", { outcome: "retried" });
  run.completion = "written";
  run.afterthought = "returned a pause";
  await clock.settle();
  expect(events).toEqual(["a completed"]);
  expect(records).toMatchObject([{ level: "warn", fields: { result: "returned a pause" } }]);
});

test("its own settlement counts where that transaction has not committed", async () => {
  const run = settle("a", { outcome: "retried" });
  run.completion = "written";
  await clock.settle();
  expect(events).toEqual(["a retried"]);
});

test("a settlement that the store refuses is replaced by a failure that says so", async () => {
  answer = ({ attachment }) => {
    if (attachment !== null) throw refusal();
    return "applied";
  };
  settle("a", { attachment: '"x"' });
  settle("b");
  await clock.settle();
  expect(events.sort()).toEqual(["a retried", "b completed"]);
  expect(sent.flat().at(-1)).toMatchObject({
    note: "settled as completed, which the store refused: value too long",
  });
  expect(messages("error")).toEqual(["the store refuses to settle a run"]);
});

test("what replaces it is not replaced again, but tried until the lease ends", async () => {
  answer = () => {
    throw refusal();
  };
  settle("a");
  await clock.advance(59_000);
  expect(new Set(sent.flat().map(({ note }) => note)).size).toBe(2);
  expect(settler.size).toBe(1);
  expect(messages("error")).toHaveLength(2);
  await clock.advance(31_000);
  expect(events).toEqual(["a dropped"]);
  expect(settler.size).toBe(0);
});

test.each(["carry", "note", "attachment", "detail"] as const)(
  "a %s counts towards the text that a statement takes",
  async (member) => {
    for (const id of ["a", "b", "c"]) settle(id, { [member]: "x".repeat(400_000) });
    await clock.settle();
    expect(ids()).toEqual(["ab", "c"]);
  },
);

test("all text of a settlement counts together", async () => {
  const text = "x".repeat(150_000);
  for (const id of ["a", "b", "c"])
    settle(id, { carry: text, note: text, attachment: text, detail: text });
  await clock.settle();
  expect(ids()).toEqual(["a", "b", "c"]);
});
