import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Marks } from "./marks.ts";

const kind = 7;

describe("marks", () => {
  it("start at the start", () => {
    expect(new Marks().of(kind, 0)).toEqual([0, 0, 0]);
  });

  it("lag behind what was seen, by one to two lags", () => {
    const marks = new Marks({ lagMs: 25 });
    marks.of(kind, 0);
    marks.saw(kind, 1, 100);
    expect(marks.of(kind, 24)).toEqual([0, 0, 0]);
    expect(marks.of(kind, 25)).toEqual([0, 0, 0]);
    marks.saw(kind, 1, 200);
    expect(marks.of(kind, 49)).toEqual([0, 0, 0]);
    expect(marks.of(kind, 50)).toEqual([0, 100, 0]);
    expect(marks.of(kind, 75)).toEqual([0, 200, 0]);
  });

  it("are kept apart by kind and by tier", () => {
    const marks = new Marks({ lagMs: 10 });
    marks.saw(1, 0, 5);
    marks.saw(1, 2, 9);
    marks.saw(2, 1, 7);
    for (const now of [0, 10]) marks.of(1, now);
    expect(marks.of(1, 15)).toEqual([5, 0, 9]);
    expect(marks.of(2, 15)).toEqual([0, 7, 0]);
    expect(marks.of(3, 15)).toEqual([0, 0, 0]);
  });

  it("never go back", () => {
    const marks = new Marks({ lagMs: 10 });
    for (const position of [9, 4, 8]) marks.saw(kind, 0, position);
    for (const now of [0, 10]) marks.of(kind, now);
    expect(marks.of(kind, 20)).toEqual([9, 0, 0]);
  });

  it("are forgotten where a walk has come back short", () => {
    const marks = new Marks({ lagMs: 10 });
    marks.saw(kind, 0, 9);
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
          marks.saw(kind, 0, position);
          seen.push({ at: now, position });
        }
        marks.of(kind, now + lagMs);
        expect(marks.of(kind, now + 2 * lagMs)).toEqual([position, 0, 0]);
      }),
    );
  });
});

describe("a walk from the start", () => {
  it("is due at first, and again a while after the last one", () => {
    const marks = new Marks({ fullWalkMs: 1_000 });
    expect(marks.isFullWalkDue(0)).toBe(true);
    marks.walked(0, 2);
    expect(marks.isFullWalkDue(1_001)).toBe(false);
    expect(marks.isFullWalkDue(1_002)).toBe(true);
  });

  it("takes at most a twentieth of the time", () => {
    const marks = new Marks({ fullWalkMs: 1_000 });
    marks.walked(0, 200);
    expect(marks.isFullWalkDue(4_199)).toBe(false);
    expect(marks.isFullWalkDue(4_200)).toBe(true);
  });
});
