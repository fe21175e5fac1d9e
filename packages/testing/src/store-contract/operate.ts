import { endStatuses, type JobId } from "@venturi/core";
import { type Bench, equal, refused, type Topic } from "./bench.ts";

const cleanup = (bench: Bench, before: number, changes: object = {}) =>
  bench.store.cleanup({
    finishedBefore: new Date(before),
    kind: null,
    statuses: endStatuses,
    ...changes,
  });

/** Jobs of every status, by their status. */
async function everyStatus(bench: Bench): Promise<Readonly<Record<string, JobId>>> {
  const completed = await bench.running();
  await bench.settle(completed);
  const dead = await bench.running({ kind: "b" });
  await bench.settle(dead, "dead");
  const cancelled = await bench.add({ kind: "b" });
  await bench.store.cancel({ id: cancelled });
  const claimed = await bench.running();
  const pending = await bench.add({ kind: "b" });
  return { completed: completed.id, dead: dead.id, cancelled, claimed: claimed.id, pending };
}

export const operateTopic: Topic = {
  topic: "operations",
  checks: [
    {
      name: "jobs are listed newest first by id, a page after another",
      check: async (bench) => {
        const ids = Array.from({ length: 7 }, () => bench.newId());
        for (const at of [3, 0, 6, 2, 5, 1, 4]) await bench.add({ id: ids[at] ?? "" });
        const newest = [...ids].reverse();
        equal(await bench.query({ limit: 3 }), newest.slice(0, 3));
        equal(await bench.query({ limit: 3, before: newest[2] ?? null }), newest.slice(3, 6));
        equal(await bench.query({ limit: 3, before: newest[5] ?? null }), newest.slice(6));
      },
    },
    {
      name: "jobs are found by status, kind and id",
      check: async (bench) => {
        const ids = await everyStatus(bench);
        for (const [status, id] of Object.entries(ids)) {
          equal((await bench.find(id)).status, status);
          equal(await bench.query({ statuses: [status as "dead"] }), [id]);
        }
        const { completed = "", dead = "", cancelled = "", claimed = "", pending = "" } = ids;
        equal(await bench.query({ statuses: endStatuses }), [cancelled, dead, completed]);
        equal(await bench.query({ kinds: ["a"] }), [claimed, completed]);
        equal(await bench.query({ kinds: ["b", "none"] }), [pending, cancelled, dead]);
        equal(await bench.query({ ids: [pending, completed, bench.newId()] }), [
          pending,
          completed,
        ]);
        equal(await bench.query({ statuses: ["dead"], kinds: ["a"] }), []);
        equal(await bench.query({ ids: [] }), []);
      },
    },
    {
      name: "the range of finish times includes its start and excludes its end",
      needs: ["clock"],
      check: async (bench) => {
        const finished: number[] = [];
        const ids: JobId[] = [];
        for (let n = 0; n < 3; n += 1) {
          await bench.advance(1_000);
          const run = await bench.running();
          await bench.settle(run, n === 1 ? "dead" : "completed");
          ids.unshift(run.id);
          finished.push(await bench.now());
        }
        await bench.add();
        const [first = 0, second = 0, third = 0] = finished;
        const between = (since: number, until: number) =>
          bench.query({ finishedSince: new Date(since), finishedUntil: new Date(until) });
        equal(await between(first, third), ids.slice(1));
        equal(await between(second, third), [ids[1]]);
        equal(await between(third + 1, third + 2), []);
        equal(await bench.query({ finishedSince: new Date(0) }), ids);
      },
    },
    {
      name: "the journal stands in order; its latest entries too",
      check: async (bench) => {
        const id = await bench.add();
        for (const outcome of ["paused", "retried", "released"] as const)
          await bench.settle(await bench.claimOne(await bench.worker()), outcome);
        await bench.store.cancel({ id });
        equal(await bench.outcomes(id), ["paused", "retried", "released", "cancelled"]);
        const { entries } = await bench.store.readJournal({ jobId: id, limit: 2 });
        equal(
          entries.map(({ outcome, runNo }) => [outcome, runNo]),
          [
            ["released", 3],
            ["cancelled", 3],
          ],
        );
        equal(await bench.journal(bench.newId()), []);
      },
    },
    {
      name: "stats are of one moment, by kind, and leave out what has nothing to count",
      needs: ["clock"],
      check: async (bench) => {
        await everyStatus(bench);
        await bench.enqueue({ kind: "c", delayMs: 5_000 }, { kind: "c" });
        await bench.advance(2_000);
        const { stats } = await bench.store.stats({});
        equal(
          {
            pending: { ...stats.pendingByKind },
            scheduled: { ...stats.scheduledByKind },
            oldest: { ...stats.oldestPendingAgeMsByKind },
            dead: { ...stats.deadByKind },
            claimed: stats.claimed,
            workers: stats.workers,
          },
          {
            pending: { b: 1, c: 2 },
            scheduled: { c: 1 },
            oldest: { b: 2_000, c: 2_000 },
            dead: { b: 1 },
            claimed: 1,
            workers: 3,
          },
        );
      },
    },
    {
      name: "a job that has become due is pending and not scheduled, whoever has looked",
      needs: ["clock"],
      check: async (bench) => {
        await bench.add({ delayMs: 1_000 });
        await bench.advance(1_500);
        const { stats } = await bench.store.stats({});
        equal({ ...stats.scheduledByKind }, {});
        equal({ ...stats.oldestPendingAgeMsByKind }, { a: 500 });
      },
    },
    {
      name: "cancel ends a pending job and refuses every other",
      check: async (bench) => {
        const { pending = "", ...others } = await everyStatus(bench);
        equal(await bench.store.cancel({ id: pending }), { applied: true });
        const { status, visibleAt, finishedAt } = await bench.find(pending);
        const [entry] = await bench.journal(pending);
        equal([status, visibleAt, finishedAt], ["cancelled", null, entry?.recordedAt]);
        equal([entry?.outcome, entry?.worker], ["cancelled", null]);
        for (const id of [...Object.values(others), pending, bench.newId()])
          equal(await bench.store.cancel({ id }), { applied: false });
      },
    },
    {
      name: "retry puts a dead job back: due now, failures forgotten, runs and carry kept",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k" });
        await bench.settle(run, "retried", { carry: '{"page":2}' });
        await bench.settle(await bench.claimOne(await bench.worker()), "dead");
        const between = await bench.add();
        equal(await bench.store.retry({ id: run.id }), { applied: true });
        equal(await bench.store.retry({ id: run.id }), { applied: false });
        const { status, failureCount, runCount, finishedAt, dedupKey } = await bench.find(run.id);
        equal([status, failureCount, runCount, finishedAt], ["pending", 0, 2, null]);
        equal(dedupKey, "k");
        equal(await bench.outcomes(run.id), ["retried", "dead", "requeued"]);
        const [first, second] = await bench.claim();
        equal([first?.id, second?.id], [between, run.id]);
        equal([second?.runCount, JSON.parse(second?.carry ?? "")], [3, { page: 2 }]);
      },
    },
    {
      name: "retry refuses every job that is not dead",
      check: async (bench) => {
        const { dead: _, ...others } = await everyStatus(bench);
        for (const id of [...Object.values(others), bench.newId()])
          equal(await bench.store.retry({ id }), { applied: false });
      },
    },
    {
      name: "cleanup deletes what ended strictly before, with its journal, and nothing that lives",
      needs: ["clock"],
      check: async (bench) => {
        const ids = await everyStatus(bench);
        const ended = await bench.now();
        equal(await cleanup(bench, ended), { deleted: 0 });
        equal(await cleanup(bench, ended + 1), { deleted: 3 });
        equal(await bench.query(), [ids["pending"], ids["claimed"]]);
        equal(await bench.journal(ids["completed"] ?? ""), []);
        equal(await cleanup(bench, ended + 1), { deleted: 0 });
      },
    },
    {
      name: "cleanup is narrowed by kind and status",
      needs: ["clock"],
      check: async (bench) => {
        const ids = await everyStatus(bench);
        const before = (await bench.now()) + 1;
        equal(await cleanup(bench, before, { kind: "none" }), { deleted: 0 });
        equal(await cleanup(bench, before, { kind: "b", statuses: ["dead"] }), { deleted: 1 });
        equal(await bench.query({ statuses: endStatuses }), [ids["cancelled"], ids["completed"]]);
        equal(await cleanup(bench, before, { kind: "b" }), { deleted: 1 });
      },
    },
    {
      name: "a job that died, was put back and ended later is not deleted by its older end",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "dead");
        const between = (await bench.now()) + 500;
        await bench.advance(1_000);
        await bench.store.retry({ id: run.id });
        equal(await cleanup(bench, between), { deleted: 0 });
        await bench.settle(await bench.claimOne(await bench.worker()));
        equal(await cleanup(bench, between), { deleted: 0 });
        equal(await bench.outcomes(run.id), ["dead", "requeued", "completed"]);
      },
    },
    {
      name: "an id may be used again once cleanup has removed its job",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run);
        await cleanup(bench, (await bench.now()) + 1);
        equal((await bench.enqueue({ id: run.id, kind: "b" }))[0], {
          id: run.id,
          outcome: "enqueued",
        });
      },
    },
    {
      name: "cleanup forgets workers that are long gone; entries then name none",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "released");
        const name = (await bench.journal(run.id))[0]?.worker;
        equal(typeof name, "string");
        await bench.advance(100_000);
        // Of one kind: the entries of others keep their workers.
        await cleanup(bench, await bench.now(), { kind: "b" });
        equal((await bench.journal(run.id))[0]?.worker, name);
        await cleanup(bench, await bench.now());
        equal((await bench.journal(run.id))[0]?.worker, null);
      },
    },
    {
      name: "an aborted signal rejects with its reason, and nothing is put back, cancelled or deleted",
      check: async (bench) => {
        const { pending = "", dead = "", ...others } = await everyStatus(bench);
        const { store } = bench;
        const far = (await bench.find(pending)).createdAt.getTime() + 86_400_000;
        await refused((signal) => ({
          findJob: () => store.findJob({ id: dead, signal }),
          queryJobs: () => bench.query({ signal }),
          readJournal: () => store.readJournal({ jobId: dead, signal }),
          stats: () => store.stats({ signal }),
          cleanup: () => cleanup(bench, far, { signal }),
          retry: () => store.retry({ id: dead, signal }),
          cancel: () => store.cancel({ id: pending, signal }),
        }));
        const left = await bench.query();
        equal(left.length, 2 + Object.keys(others).length);
        equal((await bench.find(dead)).status, "dead");
        equal((await bench.find(pending)).status, "pending");
      },
    },
  ],
};
