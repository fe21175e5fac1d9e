import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Begin, Marks, type Tier } from "./marks.ts";

const kind = 7;
const start = [-1e18, -1e18, -1e18] as const;

/** Marks of one kind, and walks of it. */
function marksOf(marks = new Marks({ lagMs: 25 })) {
  return {
    marks,
    at: (now: number, begin: Begin = "marks", of = kind) =>
      marks.starts(of, { begin, start, mayBeLow: true, now }),
    atSettled: (now: number) => marks.starts(kind, { begin: "marks", start, mayBeLow: false, now }),
    /** A walk that brought rows up to a place, and says nothing of what it left. */
    brought: (tier: Tier, last: number, of = kind) =>
      marks.ended(of, tier, { last, clearTo: undefined }, false, 0),
    /** A walk that says where nothing is left. */
    found: (tier: Tier, clearTo: number, last?: number) =>
      marks.ended(kind, tier, { last, clearTo }, false, 0),
    foundDearly: (tier: Tier, clearTo: number | undefined) =>
      marks.ended(kind, tier, { last: undefined, clearTo }, true, 0),
  };
}

/** The same, where the mark of the jobs of normal priority stands at 900. */
function advanced() {
  const its = marksOf();
  its.brought(1, 900);
  for (const now of [0, 25, 50]) its.at(now);
  return its;
}

describe("marks", () => {
  it("start at the start", () => {
    expect(marksOf().at(0)).toEqual([0, 0, 0]);
  });

  it("lag behind what was brought, by one to two lags", () => {
    const { at, brought } = marksOf();
    brought(1, 100);
    expect(at(0)).toEqual([0, 0, 0]);
    expect(at(24)).toEqual([0, 0, 0]);
    brought(1, 200);
    expect(at(25)).toEqual([0, 100, 0]);
    expect(at(49)).toEqual([0, 100, 0]);
    expect(at(50)).toEqual([0, 200, 0]);
  });

  it("are kept apart by kind and by tier", () => {
    const { at, brought } = marksOf(new Marks({ lagMs: 10 }));
    brought(0, 5, 1);
    brought(2, 9, 1);
    brought(1, 7, 2);
    for (const now of [0, 10]) for (const each of [1, 2]) at(now, "marks", each);
    expect(at(15, "marks", 1)).toEqual([5, 0, 9]);
    expect(at(15, "marks", 2)).toEqual([0, 7, 0]);
    expect(at(15, "marks", 3)).toEqual([0, 0, 0]);
  });

  it("never go back", () => {
    const { at, brought } = marksOf();
    for (const position of [9, 4, 8]) brought(0, position);
    for (const now of [0, 25]) at(now);
    expect(at(50)).toEqual([9, 0, 0]);
  });

  it("are passed over by a walk from the start, of one tier or of all", () => {
    const { at } = advanced();
    expect(at(51, 1)).toEqual([0, start[1], 0]);
    expect(at(51, 0)).toEqual([start[0], 900, 0]);
    expect(at(51, "start")).toEqual(start);
  });

  it("are forgotten where a walk has come back short", () => {
    const { at, marks } = advanced();
    marks.forget();
    expect(at(51)).toEqual([0, 0, 0]);
    expect(at(100)).toEqual([0, 0, 0]);
  });

  it("do not follow numbers that are too large to be told apart", () => {
    const { at, brought, found } = marksOf();
    brought(1, 9e18);
    found(1, 9e18);
    for (const now of [0, 25]) at(now);
    expect(at(50)).toEqual([0, 0, 0]);
  });

  it("hold only what was seen a lag before, and all that was seen two looks before that", () => {
    const step = fc.record({ waitMs: fc.nat(40), rises: fc.nat(10) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { at, brought } = marksOf();
        const seen: { readonly at: number; readonly position: number }[] = [];
        let now = 0;
        let position = 0;
        for (const { waitMs, rises } of steps) {
          now += waitMs;
          const [mark] = at(now);
          const before = (atMost: number) =>
            Math.max(0, ...seen.filter((each) => each.at <= atMost).map((each) => each.position));
          expect(mark).toBeLessThanOrEqual(before(now - 25));
          position += rises;
          brought(0, position);
          seen.push({ at: now, position });
        }
        at(now + 25);
        expect(at(now + 50)).toEqual([position, 0, 0]);
      }),
    );
  });
});

describe("where walking has become dear, the mark is behind all that a walk has passed", () => {
  it("although it brought nothing, to where the first row waits or the last number was", () => {
    const { at, foundDearly } = marksOf();
    foundDearly(0, 400);
    foundDearly(1, 700);
    for (const now of [0, 25]) at(now);
    expect(at(50)).toEqual([400, 700, 0]);
  });

  it("also past a row that somebody has locked, which is kept in mind", () => {
    const { at, atSettled, marks } = marksOf();
    marks.ended(kind, 1, { last: undefined, clearTo: 99, freeTo: 700 }, true, 0);
    for (const now of [0, 25, 50]) atSettled(now);
    expect(atSettled(60)).toEqual([0, 700, 0]);
    expect(at(61)).toEqual([0, 99, 0]);
  });

  it("and stays where it was if the walk does not say", () => {
    const { at, foundDearly } = advanced();
    foundDearly(1, undefined);
    for (const now of [60, 85]) at(now);
    expect(at(110)).toEqual([0, 900, 0]);
  });

  it("but not elsewhere: a mark for each of many kinds would cost more than it saves", () => {
    const { marks, found } = marksOf();
    found(1, 700);
    expect(marks.isEmpty).toBe(true);
  });
});

describe("a row that this session has put back at its old place", () => {
  it("lies behind the mark of the next walk, and of those after it until one says that it is gone", () => {
    const { at, marks, found } = advanced();
    for (const position of [700, 500, 600]) marks.putBack(kind, 1, position);
    for (const now of [51, 80, 110, 140]) expect(at(now)).toEqual([0, 499, 0]);
    expect(marks.isLowered([kind])).toBe(true);
    found(1, 949, 950);
    expect(at(150)).toEqual([0, 900, 0]);
    expect(marks.isLowered([kind])).toBe(false);
  });

  it("is followed by the others that were put back, and had no room beside it", () => {
    const { at, marks, found } = advanced();
    for (const position of [500, 600, 700]) marks.putBack(kind, 1, position);
    at(51);
    found(1, 499, 600);
    expect(at(52)).toEqual([0, 600, 0]);
    found(1, 699, 950);
    expect(at(53)).toEqual([0, 900, 0]);
  });

  it("is not passed over by walks that find it and do not bring it", () => {
    const { at, marks, found } = advanced();
    marks.putBack(kind, 1, 500);
    for (const now of [51, 52, 53]) {
      expect(at(now)).toEqual([0, 499, 0]);
      found(1, 499);
    }
  });

  it("is looked for again after a walk that says nothing of it", () => {
    const { at, marks, brought } = advanced();
    marks.putBack(kind, 1, 500);
    at(51);
    brought(1, 950);
    expect(at(52)).toEqual([0, 499, 0]);
  });

  it("is not taken for looked for by a walk that had begun before", () => {
    const { at, marks, found } = advanced();
    at(60);
    marks.putBack(kind, 1, 500);
    found(1, 949, 950);
    expect(at(61)).toEqual([0, 499, 0]);
  });

  it("lowers no mark that is before it, and none of other tiers and kinds", () => {
    const { at, marks, brought } = advanced();
    brought(1, 900, 8);
    for (const now of [0, 25, 50]) at(now, "marks", 8);
    marks.putBack(kind, 1, 1_000);
    marks.putBack(kind, 0, 5);
    expect(at(51)).toEqual([0, 900, 0]);
    expect(at(51, "marks", 8)).toEqual([0, 900, 0]);
  });

  it("needs no mark where there is none", () => {
    const { at, marks } = marksOf();
    marks.putBack(kind, 1, 5);
    expect(marks.isEmpty).toBe(true);
    expect(at(0)).toEqual([0, 0, 0]);
  });
});

describe("a row that a walk from the start finds before the mark", () => {
  it("lowers the mark until it is brought, though its turn comes later", () => {
    const { at, found } = advanced();
    expect(at(51, 1)).toEqual([0, start[1], 0]);
    found(1, 39);
    for (const now of [52, 80, 110]) {
      expect(at(now)).toEqual([0, 39, 0]);
      found(1, 39);
    }
    found(1, 39, 40);
    expect(at(120)).toEqual([0, 40, 0]);
    found(1, 949, 950);
    expect(at(130)).toEqual([0, 900, 0]);
  });
});

describe("a row that waits before a mark", () => {
  it("is kept in mind while walks must not begin there", () => {
    const { at, atSettled, marks, found } = advanced();
    marks.putBack(kind, 1, 500);
    expect(atSettled(51)).toEqual([0, 900, 0]);
    found(1, 999);
    expect(at(52)).toEqual([0, 499, 0]);
  });

  it("is kept in mind although the mark has yet to pass it", () => {
    const { at, brought, found } = marksOf();
    brought(1, 100);
    for (const now of [0, 25]) at(now);
    brought(1, 900);
    at(30);
    found(1, 499);
    for (const now of [31, 60, 90, 120]) expect(at(now)[1]).toBeLessThanOrEqual(499);
    found(1, 499, 500);
    expect(at(121)).toEqual([0, 500, 0]);
  });
});

describe("walks from the start", () => {
  const timed = () => {
    const its = marksOf(new Marks({ fullWalkMs: 1_000, lagMs: 25 }));
    its.brought(1, 900);
    return its;
  };

  it("are due a while after their kind became known, one tier at a time, and again a while later", () => {
    const { marks } = timed();
    expect(marks.dueTier([kind], 999)).toBe(null);
    for (const tier of [0, 1, 2] as const) {
      expect(marks.dueTier([kind], 1_000 + tier)).toBe(tier);
      marks.walked(tier, [kind], 2, 1_000 + tier);
    }
    expect(marks.dueTier([kind], 1_999)).toBe(null);
    expect(marks.dueTier([kind], 2_000)).toBe(0);
    marks.walked(0, [kind], 1, 5_001);
    expect(marks.dueTier([kind], 5_002)).toBe(1);
  });

  it("are due of each kind by itself: those that a walk leaves out have not been looked at", () => {
    const { marks, brought } = timed();
    brought(1, 900, 8);
    for (const tier of [0, 1, 2] as const) marks.walked(tier, [kind], 0, 1_000);
    expect(marks.dueTier([kind], 1_500)).toBe(null);
    expect(marks.dueTier([kind, 8], 1_500)).toBe(0);
    expect(marks.dueTier([9], 1_500)).toBe(null);
  });

  it("of all tiers count for each", () => {
    const { marks } = timed();
    marks.walked(null, [kind], 2, 500);
    expect([marks.dueTier([kind], 1_499), marks.dueTier([kind], 1_500)]).toEqual([null, 0]);
  });

  it("take at most a fortieth of the time, and a long one of one tier does not put off the others", () => {
    const { marks } = timed();
    for (const now of [0, 200]) marks.walked(1, [kind], 200, now);
    for (const tier of [0, 2] as const) marks.walked(tier, [kind], 0, 8_000);
    expect([marks.dueTier([kind], 8_199), marks.dueTier([kind], 8_200)]).toEqual([null, 1]);
  });

  it("are not put off by a single one that took long", () => {
    const { marks } = timed();
    marks.walked(1, [kind], 3, 0);
    marks.walked(1, [kind], 60_000, 60_000);
    for (const tier of [0, 2] as const) marks.walked(tier, [kind], 0, 60_500);
    expect(marks.dueTier([kind], 61_000)).toBe(1);
  });

  it("are put off by dear ones, though cheap ones come between them", () => {
    const { marks } = timed();
    for (const walkMs of [200, 1, 200]) marks.walked(1, [kind], walkMs, 0);
    for (const tier of [0, 2] as const) marks.walked(tier, [kind], 0, 7_500);
    expect([marks.dueTier([kind], 7_999), marks.dueTier([kind], 8_000)]).toEqual([null, 1]);
  });

  it("follow at once where something may be back at a place that is not known", () => {
    const { marks } = timed();
    marks.walkSoon();
    expect(marks.dueTier([kind], 1)).toBe(0);
  });
});
