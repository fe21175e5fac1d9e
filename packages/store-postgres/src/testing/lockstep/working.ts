import type { ClaimKind, Settlement, SettlementOutcome } from "@venturi/core";
import fc from "fast-check";
import { registration } from "../store-fixture.ts";
import { command } from "./command.ts";
import type { Model, Run } from "./model.ts";
import { anyJson, kinds } from "./producing.ts";

const anyPlace = fc.nat(3);
const anyKinds: fc.Arbitrary<ClaimKind[]> = fc
  .oneof(fc.constant(kinds), fc.shuffledSubarray(kinds, { minLength: 1 }))
  .chain((some) =>
    fc.tuple(
      ...some.map((kind) =>
        fc.record({
          kind: fc.constant(kind),
          limit: fc.integer({ min: 1, max: 4 }),
          leaseMs: fc.integer({ min: 1, max: 20 }).map((n) => n * 1_000),
          backstop: fc.option(fc.integer({ min: 1, max: 5 })),
        }),
      ),
    ),
  );

const claim = fc
  .record({
    place: anyPlace,
    limit: fc.integer({ min: 1, max: 6 }),
    claims: anyKinds,
    counter: fc.nat(40),
    ratio: fc.option(fc.integer({ min: 2, max: 4 })),
    excluded: fc.array(fc.nat(50), { maxLength: 2 }),
  })
  .map(
    command("claim", async (args, model, pair) => {
      const { place, limit, claims, counter, ratio, excluded } = args;
      const exclude = excluded.map((at) => model.id(at)).filter((id) => id !== undefined);
      pair.forgetMarks();
      const claimed = await pair.both(
        "claim",
        (store, worker) =>
          store.claim({
            worker: worker(place),
            limit,
            kinds: claims,
            turn: { counter, ratio },
            exclude,
          }),
        (answer) => answer,
      );
      for (const { id, runCount, leaseExpiresAt } of claimed?.jobs ?? [])
        model.runs.push({ jobId: id, runCount, worker: place, leaseExpiresAt });
    }),
  );

interface SettleDraft {
  readonly at: number;
  readonly outcome: SettlementOutcome;
  readonly seconds: number;
  readonly absolute: boolean;
  readonly carry: string | null;
  readonly note: string | null;
  readonly attachment: string | null;
}

const anySettle: fc.Arbitrary<SettleDraft> = fc.record({
  at: fc.nat(6),
  outcome: fc.constantFrom("completed", "completed", "paused", "retried", "dead", "released"),
  seconds: fc.integer({ min: -1, max: 10 }),
  absolute: fc.boolean(),
  carry: fc.option(anyJson),
  note: fc.option(fc.constantFrom("", "a note")),
  attachment: fc.option(anyJson),
});

const settle = fc
  .record({
    drafts: fc.array(anySettle, { minLength: 1, maxLength: 4 }),
    plain: fc.boolean(),
    wrongWorker: fc.constantFrom(0, 0, 0, 0, 0, 1),
  })
  .map(
    command("settle", async ({ drafts, plain, wrongWorker }, model, pair) => {
      const chosen = distinct(drafts, model);
      const [first] = chosen;
      if (first === undefined) return;
      const place = first.run.worker;
      const settlements = chosen
        .filter(({ run }) => run.worker === place)
        .map(({ run, draft }) => toSettlement(run, draft, plain, model, pair.now()));
      await pair.both(
        "settle",
        (store, worker) => store.settle({ worker: worker(place + wrongWorker), settlements }),
        ({ verdicts }) => verdicts,
      );
    }),
  );

/** One draft for each job. */
function distinct<T extends { readonly at: number }>(drafts: readonly T[], model: Model) {
  const seen = new Set<string>();
  return drafts.flatMap((draft) => {
    const run = model.run(draft.at);
    if (run === undefined || seen.has(run.jobId)) return [];
    seen.add(run.jobId);
    return [{ run, draft }];
  });
}

function toSettlement(
  { jobId, runCount }: Run,
  { outcome, seconds, absolute, carry, note, attachment }: SettleDraft,
  plain: boolean,
  model: Model,
  now: number,
): Settlement {
  const bare = { jobId, runCount, delayMs: 0, runAt: null, carry: null, note: null, detail: null };
  if (plain) return { ...bare, outcome: "completed", attachment: null };
  const pends = outcome === "paused" || outcome === "retried";
  const span = seconds > 0 ? model.span(seconds) : seconds * 1_000;
  return {
    ...bare,
    outcome,
    note,
    attachment,
    detail: outcome === "retried" ? '{"name":"Error"}' : null,
    carry: pends ? carry : null,
    delayMs: pends && !absolute ? span : 0,
    runAt: outcome === "paused" && absolute ? now + span : null,
  };
}

const handBack = fc.array(fc.record({ at: fc.nat(6) }), { minLength: 1, maxLength: 3 }).map(
  command("handBack", async (drafts, model, pair) => {
    const chosen = distinct(drafts, model);
    const place = chosen[0]?.run.worker ?? 0;
    const claims = chosen.filter(({ run }) => run.worker === place).map(({ run }) => run);
    await pair.both(
      "handBack",
      (store, worker) => store.handBack({ worker: worker(place), claims }),
      ({ verdicts }) => verdicts,
    );
  }),
);

const extend = fc
  .array(fc.record({ at: fc.nat(6), seconds: fc.nat(30) }), { minLength: 1, maxLength: 3 })
  .map(
    command("extendLease", async (drafts, model, pair) => {
      const chosen = distinct(drafts, model);
      const place = chosen[0]?.run.worker ?? 0;
      const extensions = chosen
        .filter(({ run }) => run.worker === place)
        .map(({ run, draft }) => ({ ...run, leaseMs: draft.seconds * 1_000 }));
      await pair.both(
        "extendLease",
        (store, worker) => store.extendLease({ worker: worker(place), extensions }),
        ({ results }) => results,
      );
    }),
  );

const recover = fc
  .record({
    holders: fc.uniqueArray(fc.record({ place: anyPlace, overdueOnly: fc.boolean() }), {
      maxLength: 3,
      selector: ({ place }) => place,
    }),
    orphans: fc.boolean(),
    dead: fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }),
    seconds: fc.nat(10),
  })
  .map(
    command("recover", async ({ holders, orphans, dead, seconds }, model, pair) => {
      const places = holders.filter(({ place }) => place < pair.workers.length);
      const found = await pair.both(
        "findStale",
        (store, worker) =>
          store.findStale({
            holders: places.map(({ place, overdueOnly }) => ({
              worker: worker(place),
              overdueOnly,
            })),
            orphans,
            limit: 1_000,
          }),
        // Leases that end at one instant may come in either order.
        ({ claims }) => [...claims].sort((a, b) => (a.jobId < b.jobId ? -1 : 1)),
      );
      const recoveries = (found?.claims ?? []).map((stale, index) => ({
        jobId: stale.jobId,
        runCount: stale.runCount,
        place: pair.placeOf(stale.holder),
        outcome: dead[index % dead.length] ? ("dead" as const) : ("stale-recovered" as const),
        delayMs: seconds === 0 ? 0 : model.span(seconds),
        note: "lost",
      }));
      await pair.both(
        "recover",
        (store, worker) =>
          store.recover({
            recoveries: recoveries.map(({ place, ...each }) => ({
              ...each,
              holder: worker(place),
            })),
          }),
        ({ applied }) => applied,
      );
    }),
  );

const anySettings = fc.record({
  workerTimeoutMs: fc.integer({ min: 1, max: 30 }).map((n) => n * 1_000),
  shortestLeaseMs: fc.integer({ min: 1, max: 20 }).map((n) => n * 1_000),
});

const startWorker = anySettings.map(
  command("startWorker", async (settings, model, pair) => {
    if (pair.workers.length > 3) return;
    const name = `w${model.workers}`;
    model.workers += 1;
    await pair.startWorker((store) => store.startWorker({ ...registration, ...settings, name }));
  }),
);

const stopWorker = anyPlace.map(
  command("stopWorker", async (place, _model, pair) => {
    await pair.both(
      "stopWorker",
      (store, worker) => store.stopWorker({ worker: worker(place) }),
      () => null,
    );
  }),
);

const beat = fc.record({ place: anyPlace, settings: anySettings }).map(
  command("beat", async ({ place, settings }, _model, pair) => {
    const name = `w${place % pair.workers.length}`;
    await pair.both(
      "beat",
      (store, worker) => store.beat({ ...registration, ...settings, name, worker: worker(place) }),
      ({ silent, nextSuspectMs }) => ({
        silent: [...silent].sort((a, b) => (a.name < b.name ? -1 : 1)),
        nextSuspectMs,
      }),
    );
  }),
);

export const working = {
  claim,
  settle,
  handBack,
  extend,
  recover,
  startWorker,
  stopWorker,
  beat,
};
