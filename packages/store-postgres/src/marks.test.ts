import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Marks, type Walk } from "./marks.ts";

const kind = 7;
const behindMarks: Walk = { begin: "marks", isLeaving: false };
const fromStart: Walk = { begin: "start", isLeaving: false };

describe("marks", () => {
  it("start at the start", () => {
    expect(new Marks().of(kind, 0)).toEqual([0, 0, 0]);
  });

  it("lag behind what was seen, by one to two lags", () => {
    const marks = new Marks({ lagMs: 25 });
    marks.saw(kind, 1, 100, behindMarks);
    expect(marks.of(kind, 0)).toEqual([0, 0, 0]);
    expect(marks.of(kind, 24)).toEqual([0, 0, 0]);
    marks.saw(kind, 1, 200, behindMarks);
    expect(marks.of(kind, 25)).toEqual([0, 100, 0]);
    expect(marks.of(kind, 49)).toEqual([0, 100, 0]);
    expect(marks.of(kind, 50)).toEqual([0, 200, 0]);
  });

  it("are kept apart by kind and by tier", () => {
    const marks = new Marks({ lagMs: 10 });
    marks.saw(1, 0, 5, behindMarks);
    marks.saw(1, 2, 9, behindMarks);
    marks.saw(2, 1, 7, behindMarks);
    for (const now of [0, 10]) for (const each of [1, 2]) marks.of(each, now);
    expect(marks.of(1, 15)).toEqual([5, 0, 9]);
    expect(marks.of(2, 15)).toEqual([0, 7, 0]);
    expect(marks.of(3, 15)).toEqual([0, 0, 0]);
  });

  it("never go back", () => {
    const marks = new Marks({ lagMs: 10 });
    for (const position of [9, 4, 8]) marks.saw(kind, 0, position, behindMarks);
    for (const now of [0, 10]) marks.of(kind, now);
    expect(marks.of(kind, 20)).toEqual([9, 0, 0]);
  });

  it("are forgotten where a walk has come back short", () => {
    const marks = new Marks({ lagMs: 10 });
    marks.saw(kind, 0, 9, behindMarks);
    for (const now of [0, 10]) marks.of(kind, now);
    marks.forget();
    expect(marks.of(kind, 11)).toEqual([0, 0, 0]);
    expect(marks.of(kind, 100)).toEqual([0, 0, 0]);
  });

  it("hold only what was seen a lag before, and all that was seen two looks before that", () => {
    const step = fc.record({ waitMs: fc.nat(40), rises: fc.nat(10) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const lagMs = 25;
        const marks = new Marks({ lagMs });
        const seen: { readonly at: number; readonly position: number }[] = [];
        let now = 0;
        let position = 0;
        for (const { waitMs, rises } of steps) {
          now += waitMs;
          const [mark] = marks.of(kind, now);
          const before = (atMost: number) =>
            Math.max(0, ...seen.filter(({ at }) => at <= atMost).map((each) => each.position));
          expect(mark).toBeLessThanOrEqual(before(now - lagMs));
          position += rises;
          marks.saw(kind, 0, position, behindMarks);
          seen.push({ at: now, position });
        }
        marks.of(kind, now + lagMs);
        expect(marks.of(kind, now + 2 * lagMs)).toEqual([position, 0, 0]);
      }),
    );
  });
});

describe("a row that this session has put back at its old place", () => {
  /** Marks of which those of a tier stand at 900. */
  function advanced(): Marks {
    const marks = new Marks({ lagMs: 25 });
    marks.saw(kind, 1, 900, behindMarks);
    for (const now of [0, 25, 50]) marks.of(kind, now);
    return marks;
  }

  it("lies behind the mark of the next walk, and of those after it until one has brought rows", () => {
    const marks = advanced();
    marks.putBack(kind, 1, 700);
    marks.putBack(kind, 1, 500);
    marks.putBack(kind, 1, 600);
    for (const now of [51, 80, 110, 140]) expect(marks.of(kind, now)).toEqual([0, 499, 0]);
    for (const position of [500, 600, 950, 700]) marks.saw(kind, 1, position, behindMarks);
    expect(marks.of(kind, 150)).toEqual([0, 900, 0]);
  });

  it("is followed by the others that were put back, and had no room beside it", () => {
    const marks = advanced();
    for (const position of [500, 600, 700]) marks.putBack(kind, 1, position);
    marks.of(kind, 51);
    for (const position of [500, 600]) marks.saw(kind, 1, position, behindMarks);
    expect(marks.of(kind, 52)).toEqual([0, 600, 0]);
    marks.saw(kind, 1, 700, behindMarks);
    marks.saw(kind, 1, 950, behindMarks);
    expect(marks.of(kind, 53)).toEqual([0, 900, 0]);
  });

  it("needs no further look where there was room for more", () => {
    const marks = advanced();
    marks.putBack(kind, 1, 500);
    marks.of(kind, 51);
    marks.saw(kind, 1, 500, behindMarks);
    marks.sawTheRest();
    expect(marks.of(kind, 52)).toEqual([0, 900, 0]);
  });

  it("is looked for again where the walk had to leave it", () => {
    const marks = advanced();
    marks.putBack(kind, 1, 500);
    marks.of(kind, 51);
    marks.saw(kind, 1, 950, { begin: "marks", isLeaving: true });
    expect(marks.of(kind, 52)).toEqual([0, 499, 0]);
  });

  it("is not taken for looked for by a walk that had begun before", () => {
    const marks = advanced();
    marks.of(kind, 60);
    marks.putBack(kind, 1, 500);
    marks.saw(kind, 1, 950, behindMarks);
    expect(marks.of(kind, 61)).toEqual([0, 499, 0]);
  });

  it("lowers no mark that is before it, and none of other tiers and kinds", () => {
    const marks = advanced();
    marks.saw(8, 1, 900, behindMarks);
    for (const now of [0, 25, 50]) marks.of(8, now);
    marks.putBack(kind, 1, 1_000);
    marks.putBack(kind, 0, 5);
    expect(marks.of(kind, 51)).toEqual([0, 900, 0]);
    expect(marks.of(8, 51)).toEqual([0, 900, 0]);
  });

  it("needs no mark where there is none", () => {
    const marks = new Marks();
    marks.putBack(kind, 1, 5);
    expect(marks.isEmpty).toBe(true);
    expect(marks.of(kind, 0)).toEqual([0, 0, 0]);
  });
});

describe("walks from the start", () => {
  it("are due at first, one tier at a time, and again a while after the last one of the tier", () => {
    const marks = new Marks({ fullWalkMs: 1_000 });
    for (const tier of [0, 1, 2] as const) {
      expect(marks.dueTier(tier)).toBe(tier);
      marks.walked(tier, 2, tier + 2);
    }
    expect(marks.dueTier(1_001)).toBe(null);
    expect(marks.dueTier(1_002)).toBe(0);
    expect(marks.dueTier(5_000)).toBe(0);
    marks.walked(0, 1, 5_001);
    expect(marks.dueTier(5_002)).toBe(1);
  });

  it("of all tiers count for each", () => {
    const marks = new Marks({ fullWalkMs: 1_000 });
    marks.walked(null, 2, 2);
    expect([marks.dueTier(1_001), marks.dueTier(1_002)]).toEqual([null, 0]);
  });

  it("take at most a twentieth of the time, and a long one of one tier does not put off the others", () => {
    const marks = new Marks({ fullWalkMs: 1_000 });
    marks.walked(null, 0, 0);
    marks.walked(1, 200, 200);
    expect(marks.dueTier(1_000)).toBe(0);
    for (const tier of [0, 2] as const) marks.walked(tier, 0, 4_000);
    expect([marks.dueTier(4_199), marks.dueTier(4_200)]).toEqual([null, 1]);
  });

  it("follow each other at once in a tier while they bring what lies before its mark", () => {
    const marks = new Marks({ lagMs: 25 });
    marks.saw(kind, 1, 900, behindMarks);
    for (const now of [0, 25, 50]) marks.of(kind, now);
    marks.walked(null, 1, 61);
    marks.saw(kind, 1, 950, fromStart);
    expect(marks.dueTier(62)).toBe(null);
    marks.saw(kind, 1, 40, fromStart);
    expect(marks.dueTier(62)).toBe(1);
    marks.walked(1, 1, 63);
    expect(marks.dueTier(64)).toBe(null);
  });

  it("need not follow where what they brought had been put back, and is known", () => {
    const marks = new Marks({ lagMs: 25 });
    marks.saw(kind, 1, 900, behindMarks);
    for (const now of [0, 25, 50]) marks.of(kind, now);
    marks.walked(null, 1, 61);
    marks.putBack(kind, 1, 500);
    marks.saw(kind, 1, 500, fromStart);
    expect(marks.dueTier(62)).toBe(null);
  });
});
