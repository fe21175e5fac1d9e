import { assertType, describe, expectTypeOf, it } from "vitest";
import { Outcome, TaskError } from "./index.ts";

describe("an outcome", () => {
  it("is made by Outcome, and by nothing else", () => {
    expectTypeOf(Outcome.completed()).toEqualTypeOf<Outcome>();
    expectTypeOf(Outcome.pauseFor("1s", "note")).toEqualTypeOf<Outcome>();
    expectTypeOf(Outcome.pauseUntil({ epochMilliseconds: 5 })).toEqualTypeOf<Outcome>();
    // @ts-expect-error an object that looks like one
    assertType<Outcome>({ type: "completed", note: null });
    // @ts-expect-error a number
    assertType<Outcome>(5);
  });

  it("takes durations and moments", () => {
    // @ts-expect-error text from configuration goes through parseDuration
    Outcome.pauseFor("x" as string);
    // @ts-expect-error a number is no moment
    Outcome.pauseUntil(5);
  });

  it("is readable by its type", () => {
    const outcome = Outcome.pauseFor(5);
    expectTypeOf(outcome.note).toEqualTypeOf<string | null>();
    if (outcome.type === "paused") expectTypeOf(outcome.delayMs).toEqualTypeOf<number>();
  });
});

describe("a TaskError", () => {
  it("is made by its two functions from whatever was caught", () => {
    expectTypeOf(TaskError.permanent(undefined as unknown)).toEqualTypeOf<TaskError>();
    expectTypeOf(TaskError.retry("busy", { after: "1m" })).toEqualTypeOf<TaskError>();
    // @ts-expect-error a permanent failure has no next attempt
    TaskError.permanent("gone", { after: "1m" });
    // @ts-expect-error the constructor is private
    new TaskError("x", {}, { permanent: true, afterMs: null });
  });
});
