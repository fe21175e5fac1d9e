import * as v from "valibot";
import { expectTypeOf, test } from "vitest";
import type { Handler, JobContext } from "./handler.ts";
import { Outcome } from "./outcome.ts";
import { defineTask } from "./task.ts";

const Sync = defineTask({
  kind: "sync",
  payload: v.object({ account: v.string(), since: v.optional(v.string(), "1970") }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
});

test("a handler gets what its task's schemas give, and the state", () => {
  const handler: Handler<typeof Sync, { count: number }> = (payload, ctx, state) => {
    expectTypeOf(payload).toEqualTypeOf<{ account: string; since: string }>();
    expectTypeOf(ctx).toEqualTypeOf<JobContext<{ page: number }>>();
    expectTypeOf(state).toEqualTypeOf<{ count: number }>();
    return ctx.carry.page > 3 ? Outcome.completed() : Outcome.pauseFor("1s");
  };
  expectTypeOf(handler).parameters.toExtend<[unknown, unknown, unknown]>();
});

test("declared without a state it looks at none, and fits a worker with any", () => {
  expectTypeOf<Parameters<Handler<typeof Sync>>[2]>().toEqualTypeOf<unknown>();
  expectTypeOf<Handler<typeof Sync>>().toExtend<Handler<typeof Sync, { count: number }>>();
});

test("a function that takes any context takes that of a task with a carry", () => {
  expectTypeOf<JobContext<{ page: number }>>().toExtend<JobContext>();
});

test("it returns an Outcome or nothing", () => {
  // @ts-expect-error return an Outcome or nothing
  const wrong: Handler<typeof Sync> = async () => 5;
  expectTypeOf(wrong).not.toBeAny();
});
