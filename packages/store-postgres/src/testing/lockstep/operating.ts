import { endStatuses, jobStatuses } from "@venturi/core";
import fc from "fast-check";
import { command } from "./command.ts";
import type { Model } from "./model.ts";
import type { Pair } from "./pair.ts";
import { keys, kinds, rarely } from "./producing.ts";

const clock = fc
  .integer({ min: 1, max: 15 })
  .map(command("advance", async (seconds, _model, pair) => pair.advance(seconds * 1_000)));

const cancel = fc.nat(50).map(
  command("cancel", async (at, model, pair) => {
    const id = model.id(at) ?? model.newId();
    await pair.both(
      "cancel",
      (store) => store.cancel({ id }),
      (answer) => answer,
    );
  }),
);

const retry = fc.nat(50).map(
  command("retry", async (at, model, pair) => {
    const id = model.id(at) ?? model.newId();
    await pair.both(
      "retry",
      (store) => store.retry({ id }),
      (answer) => answer,
    );
  }),
);

const cleanup = fc
  .record({
    seconds: fc.integer({ min: -1, max: 20 }),
    kind: rarely(fc.constantFrom(...kinds, "unknown")),
    statuses: fc.subarray([...endStatuses], { minLength: 1 }),
  })
  .map(
    command("cleanup", async ({ seconds, kind, statuses }, _model, pair) => {
      const finishedBefore = new Date(pair.now() - seconds * 1_000);
      await pair.both(
        "cleanup",
        (store) => store.cleanup({ finishedBefore, kind, statuses }),
        (answer) => answer,
      );
    }),
  );

const query = fc
  .record({
    statuses: fc.option(fc.subarray([...jobStatuses]), { freq: 1 }),
    kinds: rarely(fc.subarray(kinds)),
    ids: rarely(fc.array(fc.nat(50), { maxLength: 4 })),
    since: rarely(fc.nat(30)),
    until: rarely(fc.nat(30)),
    limit: fc.integer({ min: 1, max: 6 }),
    before: rarely(fc.nat(50)),
  })
  .map(
    command("queryJobs", async (args, model, pair) => {
      const ago = (seconds: number | null) =>
        seconds === null ? null : new Date(pair.now() - seconds * 1_000);
      await pair.both(
        "queryJobs",
        (store) =>
          store.queryJobs({
            statuses: args.statuses,
            kinds: args.kinds,
            ids: args.ids?.map((at) => model.id(at)).filter((id) => id !== undefined) ?? null,
            finishedSince: ago(args.since),
            finishedUntil: ago(args.until),
            limit: args.limit,
            before: args.before === null ? null : (model.id(args.before) ?? null),
          }),
        ({ jobs }) => jobs,
      );
    }),
  );

/** Compares the jobs and their counts. */
async function compareJobs(pair: Pair): Promise<void> {
  await pair.both(
    "stats",
    (store) => store.stats({}),
    ({ stats }) => stats,
  );
  await pair.both(
    "queryJobs of everything",
    (store) =>
      store.queryJobs({
        statuses: null,
        kinds: null,
        ids: null,
        finishedSince: null,
        finishedUntil: null,
        limit: 1_000,
        before: null,
      }),
    ({ jobs }) => jobs,
  );
}

/** Compares all that can be read. */
export async function compareAll(model: Model, pair: Pair): Promise<void> {
  await compareJobs(pair);
  await pair.both(
    "readJournal of every job",
    (store) => Promise.all(model.ids.map((jobId) => store.readJournal({ jobId }))),
    (journals) => journals,
  );
  await pair.both(
    "findCandidates of every key",
    (store) =>
      store.findCandidates({
        keys: kinds.flatMap((kind) => keys.map((dedupKey) => ({ kind, dedupKey, ids: model.ids }))),
      }),
    ({ candidates, known = [] }) => ({ candidates, known: [...known].sort() }),
  );
}

const look = fc
  .constant(null)
  .map(command("look", async (_args: null, _model, pair) => compareJobs(pair)));

export const operating = { clock, cancel, retry, cleanup, query, look };
