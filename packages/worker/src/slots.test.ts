import type { ClaimPlan } from "@venturi/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Slots } from "./slots.ts";
import { take } from "./testing/take.ts";

const turn = { counter: 0, ratio: null };
const jobsOf = (kind: string, count: number) => Array.from({ length: count }, () => ({ kind }));

/** A claim that asks by this plan and is answered with these jobs. */
function answer(slots: Slots, plan: ClaimPlan | null, jobs: readonly { kind: string }[]): void {
  if (plan === null) throw new Error("nothing was asked for");
  slots.asking(plan);
  slots.learn(plan, jobs);
}

describe("what is asked for", () => {
  test("is as many jobs as there are free slots, and no more of a kind than its cap leaves", () => {
    const slots = new Slots(8);
    slots.addKind("a", 2);
    const b = slots.addKind("b", null);
    for (const id of ["1", "2", "3"]) take(slots, b, id);
    const kinds = [
      { kind: "a", limit: 2 },
      { kind: "b", limit: 5 },
    ];
    expect(slots.plan(turn)).toEqual({ limit: 5, kinds, turn });
  });

  test("leaves out a kind at its cap, and counts a handler until it has ended", () => {
    const slots = new Slots(8);
    const a = slots.addKind("a", 1);
    slots.addKind("b", null);
    take(slots, a, "1");
    expect(slots.plan(turn)?.kinds.map(({ kind }) => kind)).toEqual(["b"]);
    slots.bar("1");
    expect(slots.plan(turn)?.kinds.map(({ kind }) => kind)).toEqual(["b"]);
    slots.free(a, "1");
    expect(slots.plan(turn)?.kinds.map(({ kind }) => kind)).toEqual(["a", "b"]);
  });

  test("is nothing while all slots are busy", () => {
    const slots = new Slots(1);
    take(slots, slots.addKind("a", null), "1");
    expect(slots.plan(turn)).toBeNull();
  });
});

describe("jobs claimed ahead of a slot", () => {
  test("are asked for beside the free slots", () => {
    const slots = new Slots(2);
    slots.addKind("a", null);
    expect(slots.plan(turn, 4)).toMatchObject({ limit: 6 });
  });

  test("are not asked for while all slots are busy and over half of them wait", () => {
    const slots = new Slots(2);
    const a = slots.addKind("a", null);
    for (const id of ["1", "2"]) take(slots, a, id);
    for (let n = 0; n < 3; n += 1) slots.reserve(a);
    expect(slots.plan(turn, 4)).toBeNull();
    slots.giveUp(a);
    expect(slots.plan(turn, 4)).toMatchObject({ limit: 2 });
  });

  test.each([
    ["2,000 at a time", 4, 4_000, 2_000],
    ["or half of what a number asks for", 4, 10_000, 5_000],
    ["also of an odd one", 4, 9_999, 4_999],
  ])("are asked for in two claims where they are many: %s", (_, concurrency, ahead, limit) => {
    const slots = new Slots(concurrency);
    const a = slots.addKind("a", null);
    expect(slots.plan(turn, ahead)).toMatchObject({ limit });
    for (let n = 0; n < limit; n += 1) slots.reserve(a);
    expect(slots.plan(turn, ahead)).toMatchObject({ limit });
  });

  test("are asked for 2,000 at a time, also where half of them are fewer", () => {
    const slots = new Slots(4);
    slots.addKind("a", null);
    expect(slots.plan(turn, 3_000)).toMatchObject({ limit: 2_000 });
  });

  test("do not keep a claim from bringing all that the slots take", () => {
    const slots = new Slots(3_000);
    slots.addKind("a", null);
    expect(slots.plan(turn, 4_000)).toMatchObject({ limit: 3_000 });
  });

  test("count towards the cap of their kind, until they are given up", () => {
    const slots = new Slots(4);
    const a = slots.addKind("a", 3);
    take(slots, a, "1");
    for (let n = 0; n < 2; n += 1) slots.reserve(a);
    expect(slots.plan(turn, 8)).toBeNull();
    slots.start();
    slots.goesOn("2");
    expect(slots.plan(turn, 8)).toBeNull();
    slots.giveUp(a);
    expect(slots.plan(turn, 8)).toMatchObject({ kinds: [{ kind: "a", limit: 1 }] });
  });
});

describe("whether asking again is worth a statement", () => {
  test("not after a claim came back short", () => {
    const slots = new Slots(4);
    slots.addKind("a", null);
    answer(slots, slots.plan(turn), jobsOf("a", 1));
    expect(slots.plan(turn)).toBeNull();
  });

  test("yes after a claim was cut off at its limit", () => {
    const slots = new Slots(4);
    slots.addKind("a", null);
    answer(slots, slots.plan(turn), jobsOf("a", 4));
    expect(slots.plan(turn)).not.toBeNull();
  });

  test("yes for a capped kind that brought all its cap allowed, as soon as one of it ends", () => {
    const slots = new Slots(8);
    const a = slots.addKind("a", 2);
    slots.addKind("b", null);
    answer(slots, slots.plan(turn), jobsOf("a", 2));
    for (const id of ["1", "2"]) take(slots, a, id);
    expect(slots.plan(turn)).toBeNull();
    slots.free(a, "1");
    expect(slots.plan(turn)?.kinds[0]).toEqual({ kind: "a", limit: 1 });
  });

  test("yes after a wake-up, also one that came while the claim was in flight", () => {
    const slots = new Slots(4);
    slots.addKind("a", null);
    const plan = slots.plan(turn) as ClaimPlan;
    slots.asking(plan);
    slots.expectAll();
    slots.learn(plan, []);
    expect(slots.plan(turn)).not.toBeNull();
    answer(slots, slots.plan(turn), []);
    expect(slots.plan(turn)).toBeNull();
    slots.expectAll();
    expect(slots.plan(turn)).not.toBeNull();
  });

  test("more is expected while any kind may have jobs that no claim has asked for", () => {
    const slots = new Slots(8);
    const a = slots.addKind("a", 1);
    slots.addKind("b", null);
    expect(slots.expectsMore).toBe(true);
    take(slots, a, "1");
    answer(slots, slots.plan(turn), []);
    expect(slots.expectsMore).toBe(true);
    slots.free(a, "1");
    answer(slots, slots.plan(turn), []);
    expect(slots.expectsMore).toBe(false);
  });

  test("a kind that was not asked for keeps what is known of it", () => {
    const slots = new Slots(8);
    const a = slots.addKind("a", 1);
    slots.addKind("b", null);
    take(slots, a, "1");
    answer(slots, slots.plan(turn), []);
    expect(slots.plan(turn)).toBeNull();
    slots.free(a, "1");
    expect(slots.plan(turn)).not.toBeNull();
  });
});

describe("jobs that must not be claimed", () => {
  test("a job whose lease was lost, until its handler has ended", () => {
    const slots = new Slots(4);
    const a = slots.addKind("a", null);
    const freed: boolean[] = [];
    slots.onFree((mayClaimAgain) => freed.push(mayClaimAgain));
    for (const id of ["1", "2"]) take(slots, a, id);
    slots.bar("1");
    expect(slots.barred()).toEqual(["1"]);
    slots.free(a, "2");
    slots.free(a, "1");
    expect(slots.barred()).toEqual([]);
    expect(freed).toEqual([false, true]);
  });

  test("a job that does not run here is not barred by losing it", () => {
    const slots = new Slots(4);
    slots.bar("1");
    expect(slots.barred()).toEqual([]);
  });
});

test("whatever starts and ends, neither concurrency nor a cap is ever exceeded", () => {
  const kindNames = ["a", "b", "c"] as const;
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.array(fc.option(fc.integer({ min: 1, max: 4 })), { minLength: 3, maxLength: 3 }),
      fc.array(
        fc.record({
          ends: fc.nat(9),
          losses: fc.nat(3),
          waiting: fc.tuple(fc.nat(12), fc.nat(12), fc.nat(12)),
        }),
      ),
      (concurrency, caps, steps) => {
        const slots = new Slots(concurrency);
        const kinds = kindNames.map((name, index) => slots.addKind(name, caps[index] ?? null));
        const running: { kind: (typeof kinds)[number]; id: string }[] = [];
        let next = 0;
        for (const { ends, losses, waiting } of steps) {
          for (const { kind, id } of running.splice(0, ends)) slots.free(kind, id);
          // A handler whose lease was lost still runs, and still counts.
          for (const { id } of running.slice(0, losses)) slots.bar(id);
          slots.expectAll();
          const plan = slots.plan(turn);
          if (plan === null) continue;
          let left = plan.limit;
          for (const { kind, limit } of plan.kinds) {
            const of = kinds[kindNames.indexOf(kind as "a")] as (typeof kinds)[number];
            const count = Math.min(left, limit, waiting[kindNames.indexOf(kind as "a")] ?? 0);
            left -= count;
            for (let i = 0; i < count; i += 1) {
              const id = `${next++}`;
              take(slots, of, id);
              running.push({ kind: of, id });
            }
          }
          expect(slots.running).toBe(running.length);
          expect(slots.running).toBeLessThanOrEqual(concurrency);
          for (const { cap, taken } of kinds) expect(taken).toBeLessThanOrEqual(cap ?? concurrency);
        }
      },
    ),
  );
});
