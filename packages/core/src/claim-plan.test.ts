import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ClaimPlan,
  inTurns,
  type KindLoad,
  planClaim,
  type Turn,
  takeTurns,
  type WaitingJob,
} from "./claim-plan.ts";
import { priorityFloor } from "./priority.ts";

const strict: Turn = { counter: 0, ratio: null };

function load(kind: string, cap: number | null = null, taken = 0): KindLoad {
  return { kind, cap, taken };
}

/** What waits, as "kind tier" in arrival order. */
function waiting(...jobs: readonly string[]): WaitingJob[] {
  return jobs.map((job) => ({ kind: job.slice(0, -1), tier: Number(job.slice(-1)) }));
}

function plan(limit: number, kinds: Readonly<Record<string, number>>, turn: Turn = strict) {
  return {
    limit,
    kinds: Object.entries(kinds).map(([kind, room]) => ({ kind, limit: room })),
    turn,
  };
}

describe("what a claim asks for", () => {
  it("is every kind, up to the free slots", () => {
    expect(planClaim({ free: 8, kinds: [load("a"), load("b")], turn: strict })).toEqual({
      limit: 8,
      kinds: [
        { kind: "a", limit: 8 },
        { kind: "b", limit: 8 },
      ],
      turn: strict,
    });
  });

  it("is no more of a kind than its cap leaves", () => {
    const kinds = [load("a", 5, 3), load("b", 100, 0)];
    expect(planClaim({ free: 16, kinds, turn: strict })).toEqual({
      limit: 16,
      kinds: [
        { kind: "a", limit: 2 },
        { kind: "b", limit: 16 },
      ],
      turn: strict,
    });
  });

  it("is no more than all caps together leave", () => {
    const kinds = [load("a", 2, 1), load("b", 3, 1)];
    expect(planClaim({ free: 16, kinds, turn: strict })?.limit).toBe(3);
  });

  it("leaves out kinds at their cap, or beyond it with handlers that outlived their lease", () => {
    const kinds = [load("a", 2, 2), load("b", 2, 5), load("c", 2, 1)];
    expect(planClaim({ free: 4, kinds, turn: strict })).toEqual(plan(1, { c: 1 }));
  });

  it("passes the turn on as it stands", () => {
    const turn = { counter: 41, ratio: 4 };
    expect(planClaim({ free: 1, kinds: [load("a")], turn })?.turn).toEqual(turn);
  });

  it.each<[string, number, KindLoad[]]>([
    ["no slot is free", 0, [load("a")]],
    ["more run than there are slots", -3, [load("a")]],
    ["no kind is registered", 4, []],
    ["every kind is at its cap", 4, [load("a", 1, 1), load("b", 2, 2)]],
  ])("is nothing when %s", (_, free, kinds) => {
    expect(planClaim({ free, kinds, turn: strict })).toBeNull();
  });
});

describe("the turns of a claim", () => {
  it("take by priority, then arrival, when the ratio is null", () => {
    const jobs = waiting("a2", "a0", "b1", "b0", "a1");
    const all = plan(5, { a: 5, b: 5 });
    expect(takeTurns(all, jobs)).toEqual([1, 3, 2, 4, 0]);
    expect(takeTurns({ ...all, limit: 2 }, jobs)).toEqual([1, 3]);
  });

  it("ratio 4: twelve of all, three of normal and low, one of low in sixteen", () => {
    const jobs = Array.from({ length: 48 }, (_, index) => ({ kind: "a", tier: index % 3 }));
    const taken = takeTurns(plan(16, { a: 48 }, { counter: 0, ratio: 4 }), jobs);
    expect(taken.map((index) => jobs[index]?.tier)).toEqual([
      0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2,
    ]);
  });

  it("ratio 2: one low job behind four high ones is not last", () => {
    const jobs = waiting("a2", "a0", "a0", "a0", "a0");
    const taken = takeTurns(plan(5, { a: 5 }, { counter: 0, ratio: 2 }), jobs);
    expect(taken).toEqual([1, 0, 2, 3, 4]);
  });

  it("spill upwards when the tiers from the floor on hold nothing", () => {
    const turn = { counter: 15, ratio: 4 };
    expect(takeTurns(plan(1, { a: 1 }, turn), waiting("a1", "a0"))).toEqual([1]);
  });

  it("pass the jobs of a kind whose room is used up, also at the head of the line", () => {
    const jobs = waiting("a0", "a0", "a0", "b1", "a0", "b2");
    expect(takeTurns(plan(4, { a: 2, b: 4 }), jobs)).toEqual([0, 1, 3, 5]);
  });

  it("pass the jobs of kinds that were not asked for", () => {
    expect(takeTurns(plan(4, { b: 4 }), waiting("a0", "b2", "c0", "b1"))).toEqual([3, 1]);
  });

  it("take nothing of nothing", () => {
    expect(takeTurns(plan(4, { a: 4 }), [])).toEqual([]);
  });
});

describe("whatever waits", () => {
  const kindNames = ["a", "b", "c", "d"];
  const anyKind = fc.constantFrom(...kindNames);
  const anyWaiting = fc.array(fc.record({ kind: anyKind, tier: fc.nat(2) }), { maxLength: 40 });
  const anyTurn = fc.record({
    counter: fc.nat(10_000),
    ratio: fc.option(fc.integer({ min: 2, max: 7 })),
  });
  const anyLoads = fc.uniqueArray(
    fc.record({
      kind: anyKind,
      cap: fc.option(fc.integer({ min: 1, max: 10 })),
      taken: fc.nat(8),
    }),
    { selector: ({ kind }) => kind, minLength: 1 },
  );
  const anyClaim = fc.record({
    free: fc.integer({ min: 1, max: 20 }),
    kinds: anyLoads,
    turn: anyTurn,
    jobs: anyWaiting,
  });

  it("a batch of n takes exactly the jobs that n single claims in a row would take", () => {
    fc.assert(
      fc.property(anyClaim, ({ free, kinds, turn, jobs }) => {
        const batch = planClaim({ free, kinds, turn });
        const taken = batch === null ? [] : takeTurns(batch, jobs);
        expect(taken).toEqual(singleClaims(free, kinds, turn, jobs));
      }),
      { numRuns: 1_000 },
    );
  });

  it("a batch takes what two batches in a row would take, wherever it is parted", () => {
    fc.assert(
      fc.property(anyClaim, fc.nat(20), ({ free, kinds, turn, jobs }, at) => {
        const whole = planClaim({ free, kinds, turn });
        fc.pre(whole !== null);
        const first = takeTurns({ ...whole, limit: Math.min(at, whole.limit) }, jobs);
        const second = planClaim({
          free: whole.limit - first.length,
          kinds: kinds.map((kind) => hold(kind, countOf(kind.kind, first, jobs))),
          turn: { ...turn, counter: turn.counter + first.length },
        });
        const left = jobs.map((job, index) => (first.includes(index) ? gone : job));
        const rest = second === null ? [] : takeTurns(second, left);
        expect([...first, ...rest]).toEqual(takeTurns(whole, jobs));
      }),
    );
  });

  it("each turn takes the first of the tiers from its floor on, else the first of those above", () => {
    fc.assert(
      fc.property(anyClaim, ({ free, kinds, turn, jobs }) => {
        const asked = planClaim({ free, kinds, turn });
        fc.pre(asked !== null);
        expect(takeTurns(asked, jobs)).toEqual(byDefinition(asked, jobs));
      }),
      { numRuns: 1_000 },
    );
  });

  it("none is taken twice, none beyond a cap, and what was asked for is taken if it is there", () => {
    fc.assert(
      fc.property(anyClaim, ({ free, kinds, turn, jobs }) => {
        const asked = planClaim({ free, kinds, turn });
        fc.pre(asked !== null);
        const taken = takeTurns(asked, jobs);
        expect(new Set(taken).size).toBe(taken.length);
        expect(taken.length).toBeLessThanOrEqual(asked.limit);
        const room = new Map(asked.kinds.map(({ kind, limit }) => [kind, limit]));
        for (const kind of kindNames)
          expect(countOf(kind, taken, jobs)).toBeLessThanOrEqual(room.get(kind) ?? 0);
        const available = kindNames.map((kind) =>
          Math.min(room.get(kind) ?? 0, jobs.filter((job) => job.kind === kind).length),
        );
        expect(taken.length).toBe(
          Math.min(
            asked.limit,
            available.reduce((sum, n) => sum + n, 0),
          ),
        );
      }),
    );
  });

  it("no tier starves: of an endless supply, r² turns in a row take every tier", () => {
    const supply = Array.from({ length: 150 }, (_, index) => ({ kind: "a", tier: index % 3 }));
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 7 }), fc.nat(9_999), (ratio, counter) => {
        const asked = plan(ratio * ratio, { a: 1_000 }, { counter, ratio });
        const tiers = takeTurns(asked, supply).map((index) => supply[index]?.tier);
        expect(tiers.filter((tier) => tier === 2)).toHaveLength(1);
        expect(tiers.filter((tier) => tier === 1)).toHaveLength(ratio - 1);
      }),
    );
  });
});

const gone: WaitingJob = { kind: "", tier: 0 };

function hold(kind: KindLoad, more: number): KindLoad {
  return { ...kind, taken: kind.taken + more };
}

function countOf(kind: string, taken: readonly number[], jobs: readonly WaitingJob[]): number {
  return taken.filter((index) => jobs[index]?.kind === kind).length;
}

/** As a worker with `free` slots claims one by one, each time with what it holds by then. */
function singleClaims(
  free: number,
  kinds: readonly KindLoad[],
  turn: Turn,
  jobs: readonly WaitingJob[],
): number[] {
  const taken: number[] = [];
  while (taken.length < free) {
    const one = planClaim({
      free: 1,
      kinds: kinds.map((kind) => hold(kind, countOf(kind.kind, taken, jobs))),
      turn: { ...turn, counter: turn.counter + taken.length },
    });
    const left = jobs.map((job, index) => (taken.includes(index) ? gone : job));
    const [next] = one === null ? [] : takeTurns(one, left);
    if (next === undefined) break;
    taken.push(next);
  }
  return taken;
}

/** The rule of the rotation word for word, by sorting. */
function byDefinition(asked: ClaimPlan, jobs: readonly WaitingJob[]): number[] {
  const taken: number[] = [];
  for (let turn = 1; turn <= asked.limit; turn += 1) {
    const floor = priorityFloor(asked.turn.counter + turn, asked.turn.ratio);
    const open = jobs
      .map((job, index) => ({ ...job, index }))
      .filter(({ kind, index }) => {
        const room = asked.kinds.find((each) => each.kind === kind)?.limit ?? 0;
        return !taken.includes(index) && countOf(kind, taken, jobs) < room;
      })
      .sort((a, b) => a.tier - b.tier || a.index - b.index);
    const next = open.find(({ tier }) => tier >= floor) ?? open[0];
    if (next === undefined) break;
    taken.push(next.index);
  }
  return taken;
}

describe("the order in which what a claim brought starts", () => {
  const jobs = (...priorities: readonly ("high" | "normal" | "low")[]) =>
    priorities.map((priority, index) => ({ kind: "a", priority, index }));
  const order = (turn: Turn, of: ReturnType<typeof jobs>) =>
    inTurns(turn, of).map(({ priority, index }) => `${priority} ${index}`);

  it("is that of its turns, so that a large batch does not put the lower priorities last", () => {
    const batch = jobs(...Array.from({ length: 20 }, () => "high" as const), "normal", "low");
    const started = order({ counter: 0, ratio: 4 }, batch);
    expect(started.indexOf("normal 20")).toBe(3);
    expect(started.indexOf("low 21")).toBe(7);
    expect(new Set(started).size).toBe(22);
  });

  it("is the claim's own where priority is strict, or all have the same", () => {
    const mixed = jobs("high", "high", "normal", "low");
    expect(inTurns(strict, mixed)).toBe(mixed);
    const same = jobs("normal", "normal");
    expect(inTurns({ counter: 0, ratio: 4 }, same)).toBe(same);
    expect(inTurns({ counter: 0, ratio: 4 }, [])).toEqual([]);
  });

  it("loses and doubles nothing", () => {
    const priority = fc.constantFrom("high" as const, "normal" as const, "low" as const);
    fc.assert(
      fc.property(
        fc.array(priority),
        fc.nat(100),
        fc.option(fc.integer({ min: 1, max: 5 })),
        (priorities, counter, ratio) => {
          const batch = jobs(...priorities);
          const started = inTurns({ counter, ratio }, batch);
          expect(new Set(started)).toEqual(new Set(batch));
          expect(started).toHaveLength(batch.length);
        },
      ),
    );
  });
});
