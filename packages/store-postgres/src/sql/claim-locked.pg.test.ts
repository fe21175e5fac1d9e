import { testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { whileLocked } from "../testing/locks.ts";
import { claimKind, claimRequest, enqueue, job, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const kinds = ["a", "b", "c"] as const;
const tiers = ["high", "normal", "low"] as const;

type Scenario = typeof anyScenario extends fc.Arbitrary<infer S> ? S : never;
const anyScenario = fc.record({
  rows: fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      priority: fc.constantFrom(...tiers),
      isLocked: fc.boolean(),
    }),
    { maxLength: 24 },
  ),
  caps: fc.tuple(...kinds.map(() => fc.integer({ min: 1, max: 8 }))),
  limit: fc.integer({ min: 1, max: 16 }),
  ratio: fc.option(fc.integer({ min: 2, max: 5 })),
  counter: fc.nat(100),
  excluded: fc.nat(2),
  afterOneThatTookAll: fc.boolean(),
});

const kindWithoutRoomForItsTiers = {
  rows: [
    { kind: "b", priority: "low", isLocked: false },
    { kind: "a", priority: "low", isLocked: false },
    { kind: "c", priority: "high", isLocked: true },
    { kind: "a", priority: "normal", isLocked: false },
    { kind: "a", priority: "high", isLocked: true },
    { kind: "a", priority: "high", isLocked: false },
  ],
  caps: [2, 1, 1],
  limit: 3,
  ratio: null,
  counter: 0,
  excluded: 0,
  afterOneThatTookAll: false,
} satisfies Scenario;

it("whatever others have locked, a claim brings all that it has room for, the first of each kind and tier", async () => {
  await fc.assert(
    fc.asyncProperty(anyScenario, async (scenario) => {
      const { rows, caps, limit, ratio, counter } = scenario;
      await removeJobs(pool);
      const worker = await startWorker(store);
      const request = (of: readonly string[], changes = {}) =>
        claimRequest(
          worker,
          of.map((kind, index) => claimKind(kind, { limit: caps[index] ?? 1 })),
          { limit, turn: { counter, ratio }, ...changes },
        );
      if (scenario.afterOneThatTookAll) await store.claim(request(["none"]));
      const ids =
        rows.length === 0
          ? []
          : await enqueue(store, ...rows.map(({ kind, priority }) => job(kind, { priority })));
      const all = rows.map((row, index) => ({ ...row, id: ids[index] as string }));
      const exclude = all.slice(0, scenario.excluded).map(({ id }) => id);
      const wanted = all.filter(({ id }) => !exclude.includes(id));
      const locked = all.filter(({ isLocked }) => isLocked).map(({ id }) => id);
      const { jobs, blocked } = await whileLocked(pool, locked, () =>
        store.claim(request(kinds, { exclude })),
      );
      const free = wanted.filter(({ isLocked }) => !isLocked);
      let room = 0;
      let isShortOfLocked = false;
      for (const [index, kind] of kinds.entries()) {
        const cap = caps[index] ?? 0;
        const count = free.filter((row) => row.kind === kind).length;
        room += Math.min(cap, count);
        isShortOfLocked ||= count < cap && wanted.some((row) => row.kind === kind && row.isLocked);
        const brought = jobs.filter((each) => each.kind === kind);
        expect(brought.length).toBeLessThanOrEqual(cap);
        for (const priority of tiers) {
          const expected = free.filter((row) => row.kind === kind && row.priority === priority);
          const got = brought.filter((each) => each.priority === priority).map(({ id }) => id);
          expect(got).toEqual(expected.slice(0, got.length).map(({ id }) => id));
        }
      }
      expect(jobs.length).toBe(Math.min(limit, room));
      // Those whose claim says that they are held are held, and no others.
      const { rows: held } = await pool.query(
        "select venturi_ulid(job_id) as id from venturi_queue where claimed_by is not null",
      );
      expect(held.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
      expect(blocked).toBe(jobs.length < limit && isShortOfLocked);
    }),
    { numRuns: 150, examples: [[kindWithoutRoomForItsTiers]] },
  );
}, 90_000);
