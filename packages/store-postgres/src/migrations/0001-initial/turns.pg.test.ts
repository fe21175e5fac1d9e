import { type ClaimPlan, takeTurns, type WaitingJob } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { expect, it } from "vitest";

const { pool } = await testDatabase();

const kinds = [3, 7, 8, 21];
const anyPlan: fc.Arbitrary<ClaimPlan> = fc.record({
  limit: fc.integer({ min: 1, max: 25 }),
  kinds: fc
    .shuffledSubarray(kinds, { minLength: 1 })
    .chain((some) =>
      fc.tuple(
        ...some.map((kind) =>
          fc.record({ kind: fc.constant(String(kind)), limit: fc.integer({ min: 1, max: 12 }) }),
        ),
      ),
    ),
  turn: fc.record({
    counter: fc.oneof(fc.nat(200), fc.integer({ min: 2 ** 31, max: 2 ** 40 })),
    ratio: fc.option(fc.integer({ min: 0, max: 7 })),
  }),
});
const anyJob = fc.record({ kind: fc.constantFrom(...kinds.map(String)), tier: fc.nat(2) });

it("turns_v1 takes what takeTurns takes, per kind and tier, in any scenario", async () => {
  await fc.assert(
    fc.asyncProperty(anyPlan, fc.array(anyJob, { maxLength: 60 }), async (plan, jobs) => {
      // Only what was asked for is ever probed.
      const waiting = jobs.filter(({ kind }) => plan.kinds.some((asked) => asked.kind === kind));
      expect(await turns(plan, waiting)).toEqual(quotas(takeTurns(plan, waiting), waiting));
    }),
    { numRuns: 1_000 },
  );
});

it("a ratio of a million does not overflow", async () => {
  const plan = {
    limit: 3,
    kinds: [{ kind: "3", limit: 3 }],
    turn: { counter: 999_999_999_999, ratio: 1_000_000 },
  };
  const waiting = [2, 1, 0].map((tier) => ({ kind: "3", tier }));
  expect(await turns(plan, waiting)).toEqual(quotas(takeTurns(plan, waiting), waiting));
});

type Quota = readonly [kind: string, tier: number, n: number];

async function turns(plan: ClaimPlan, waiting: readonly WaitingJob[]): Promise<Quota[]> {
  const ordered = [0, 1, 2].flatMap((tier) => waiting.filter((job) => job.tier === tier));
  const { rows } = await pool.query<{ kind_id: number; priority: number; n: number }>(
    `select kind_id, priority, n
    from venturi_turns_v1($1, $2, $3, $4::int4[], $5::int2[], $6::int4[], $7::int4[])`,
    [
      plan.limit,
      plan.turn.counter,
      plan.turn.ratio,
      ordered.map(({ kind }) => Number(kind)),
      ordered.map(({ tier }) => tier),
      plan.kinds.map(({ kind }) => Number(kind)),
      plan.kinds.map(({ limit }) => limit),
    ],
  );
  return sorted(rows.map(({ kind_id, priority, n }) => [String(kind_id), priority, n]));
}

function quotas(taken: readonly number[], waiting: readonly WaitingJob[]): Quota[] {
  const counts = new Map<string, Quota>();
  for (const index of taken) {
    const { kind, tier } = waiting[index] as WaitingJob;
    const [, , n] = counts.get(`${kind}/${tier}`) ?? [kind, tier, 0];
    counts.set(`${kind}/${tier}`, [kind, tier, n + 1]);
  }
  return sorted([...counts.values()]);
}

function sorted(some: readonly Quota[]): Quota[] {
  return [...some].sort(([a, i], [b, j]) => Number(a) - Number(b) || i - j);
}
