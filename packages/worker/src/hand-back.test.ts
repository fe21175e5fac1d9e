import { type Logger, type SettleVerdict, silentLogger, VenturiError } from "@venturi/core";
import { expect, test } from "vitest";
import { HandBack, type UnstartedClaim } from "./hand-back.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { deferred } from "./testing/signals.ts";

const jobId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** Hands one claim back, to a store that answers when the test says so. */
async function handingBack(leaseMs: number, logger: Logger = silentLogger) {
  const clock = new ManualClock();
  const answer = deferred<readonly SettleVerdict[]>();
  const dropped: UnstartedClaim[] = [];
  const handBack = new HandBack({
    store: { handBack: async () => ({ verdicts: await answer.promise }) },
    worker: 1,
    clock,
    logger,
    onHandedBack: () => undefined,
    onDropped: (claim) => dropped.push(claim),
  });
  const claim: UnstartedClaim = {
    jobId,
    runCount: 2,
    kind: "a",
    leaseExpiresAt: undefined,
    leaseEndsAt: clock.now() + leaseMs,
  };
  handBack.handBack(claim);
  await clock.settle();
  return { clock, answer, handBack, dropped };
}

test("a claim is being undone from when it is handed back until the store has answered", async () => {
  const { clock, answer, handBack } = await handingBack(60_000);
  expect(handBack.isUndoing({ jobId, runCount: 2 })).toBe(true);
  answer.resolve(["applied"]);
  await clock.settle();
  expect(handBack.isUndoing({ jobId, runCount: 2 })).toBe(false);
});

test("another claim of the same job is not being undone", async () => {
  const { handBack } = await handingBack(60_000);
  expect(handBack.isUndoing({ jobId, runCount: 3 })).toBe(false);
});

test("a claim whose lease has ended is still being undone while the store has not answered", async () => {
  const { clock, handBack } = await handingBack(0);
  await clock.settle();
  expect(handBack.isUndoing({ jobId, runCount: 2 })).toBe(true);
});

test("a claim that the store refuses to take back is told of, once, until its lease has ended", async () => {
  const { logger, records } = recordingLogger();
  const { clock, answer, handBack, dropped } = await handingBack(60_000, logger);
  answer.reject(new VenturiError("database", "check violated", { sqlState: "23514" }));
  await clock.advance(59_000);
  expect(records.filter(({ level }) => level === "error")).toEqual([
    {
      level: "error",
      message: "the store refuses to take a claim back",
      fields: { jobId, runCount: 2, error: "check violated" },
    },
  ]);
  expect(handBack.isUndoing({ jobId, runCount: 2 })).toBe(true);
  expect(dropped).toEqual([]);
  await clock.advance(61_000);
  expect(handBack.size).toBe(0);
  expect(handBack.isUndoing({ jobId, runCount: 2 })).toBe(false);
  expect(dropped).toMatchObject([{ jobId, runCount: 2 }]);
});
