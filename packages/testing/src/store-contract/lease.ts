import type { JobId, WorkerId } from "@venturi/core";
import { type Bench, equal, refused, registration, type Topic } from "./bench.ts";

const beat = (bench: Bench, worker: WorkerId) => bench.store.beat({ ...registration, worker });

const recovery = (
  run: { readonly id: string; readonly runCount: number; readonly worker: WorkerId },
  changes: { readonly outcome?: "stale-recovered" | "dead"; readonly delayMs?: number } = {},
) => ({
  jobId: run.id,
  runCount: run.runCount,
  holder: run.worker,
  outcome: "stale-recovered" as const,
  delayMs: 0,
  note: "lost",
  ...changes,
});

/** The jobs of claims that nobody answers for. */
async function orphans(bench: Bench): Promise<readonly JobId[]> {
  const { claims } = await bench.store.findStale({ holders: [], orphans: true, limit: 10 });
  return claims.map(({ jobId }) => jobId);
}

export const leaseTopic: Topic = {
  topic: "leases and recovery",
  checks: [
    {
      name: "a lease is moved while its claim is held, and never shortened",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 10_000 });
        const claim = { jobId: run.id, runCount: 1 };
        const extend = async (leaseMs: number) =>
          (
            await bench.store.extendLease({
              worker: run.worker,
              extensions: [{ ...claim, leaseMs }],
            })
          ).results[0];
        await bench.advance(5_000);
        const now = await bench.now();
        equal(await extend(30_000), {
          verdict: "applied",
          leaseExpiresAt: new Date(now + 30_000),
          leaseMs: 30_000,
        });
        equal(await extend(1_000), {
          verdict: "applied",
          leaseExpiresAt: new Date(now + 30_000),
          leaseMs: 30_000,
        });
        equal((await bench.find(run.id)).leaseExpiresAt, new Date(now + 30_000));
      },
    },
    {
      name: "a lease whose claim is lost is not moved; results stand in order",
      check: async (bench) => {
        const run = await bench.running();
        const extensions = [
          { jobId: run.id, runCount: 2, leaseMs: 1e6 },
          { jobId: run.id, runCount: 1, leaseMs: 1e6 },
          { jobId: bench.newId(), runCount: 1, leaseMs: 1e6 },
        ];
        const { results } = await bench.store.extendLease({ worker: run.worker, extensions });
        equal(
          results.map(({ verdict }) => verdict),
          ["lost", "applied", "lost"],
        );
      },
    },
    {
      name: "a worker is judged by its own row: suspect after its shortest lease, dead after its timeout",
      needs: ["clock"],
      check: async (bench) => {
        const observer = await bench.worker();
        const other = await bench.worker({
          name: "w2",
          workerTimeoutMs: 30_000,
          shortestLeaseMs: 10_000,
        });
        const look = async () => {
          const { silent, nextSuspectMs } = await beat(bench, observer);
          // Stores need not say what timeout it has.
          const judged = silent.map((worker) => ({ timeoutMs: 30_000, ...worker }));
          return { silent: judged, nextSuspectMs };
        };
        equal(await look(), { silent: [], nextSuspectMs: 10_000 });
        await bench.advance(10_000);
        const seen = { worker: other, name: "w2", timeoutMs: 30_000 };
        equal(await look(), {
          silent: [{ ...seen, silentMs: 10_000, dead: false }],
          nextSuspectMs: 20_000,
        });
        await bench.advance(20_000);
        equal(await look(), {
          silent: [{ ...seen, silentMs: 30_000, dead: true }],
          nextSuspectMs: null,
        });
        await bench.store.beat({ ...registration, worker: other, shortestLeaseMs: 10_000 });
        equal((await look()).silent, []);
      },
    },
    {
      name: "a worker that stopped cleanly is not waited for",
      needs: ["clock"],
      check: async (bench) => {
        const [observer, other] = [await bench.worker(), await bench.worker()];
        await bench.store.stopWorker({ worker: other });
        await bench.advance(1e9);
        const { silent, nextSuspectMs } = await beat(bench, observer);
        equal([silent, nextSuspectMs], [[], null]);
        equal((await bench.store.stats({})).stats.workers, 1);
      },
    },
    {
      name: "of a suspect the overdue claims are stale, of a dead worker all, oldest lease first",
      needs: ["clock"],
      check: async (bench) => {
        const holder = await bench.worker();
        await bench.enqueue({ leaseMs: 20_000, payload: "1" }, { leaseMs: 10_000, payload: "2" });
        const { jobs } = await bench.claimFor(holder, { kinds: [{ kind: "a", backstop: 3 }] });
        const [long, short] = jobs.map(({ id }) => id);
        const shortEnds = jobs[1]?.leaseExpiresAt;
        await bench.advance(10_000);
        const find = (overdueOnly: boolean) =>
          bench.store.findStale({
            holders: [{ worker: holder, overdueOnly }],
            orphans: false,
            limit: 10,
          });
        equal(
          // A store need not say when the claim ends.
          (await find(true)).claims.map(({ leaseExpiresAt = shortEnds, ...claim }) => ({
            ...claim,
            payload: JSON.parse(claim.payload),
            leaseExpiresAt,
          })),
          [
            {
              jobId: short,
              kind: "a",
              payload: 2,
              runCount: 1,
              failureCount: 0,
              backstop: 3,
              holder,
              overdue: true,
              leaseExpiresAt: shortEnds,
            },
          ],
        );
        equal(
          (await find(false)).claims.map(({ jobId, overdue }) => [jobId, overdue]),
          [
            [short, true],
            [long, false],
          ],
        );
      },
    },
    {
      name: "findStale takes no more than its limit",
      needs: ["clock"],
      check: async (bench) => {
        const holder = await bench.worker();
        await bench.enqueue({}, {}, {});
        await bench.claimFor(holder);
        const holders = [{ worker: holder, overdueOnly: false }];
        equal((await bench.store.findStale({ holders, orphans: true, limit: 2 })).claims.length, 2);
      },
    },
    {
      name: "recovery re-pends with its delay, a failure and one entry in the holder's name",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 1_000 });
        await bench.advance(1_000);
        const recoveries = [recovery(run, { delayMs: 5_000 })];
        const holders = [{ worker: run.worker, overdueOnly: true }];
        const scan = async () =>
          (await bench.store.findStale({ holders, orphans: true, limit: 10 })).claims;
        equal(
          (await scan()).map(({ jobId }) => jobId),
          [run.id],
        );
        equal(await bench.store.recover({ recoveries }), { applied: [true] });
        equal(await scan(), []);
        equal(await bench.store.recover({ recoveries }), { applied: [false] });
        const job = await bench.find(run.id);
        equal(
          [job.status, job.failureCount, job.runCount, job.visibleAt?.getTime()],
          ["pending", 1, 1, (await bench.now()) + 5_000],
        );
        const [entry, ...rest] = await bench.journal(run.id);
        equal(rest, []);
        equal(
          [entry?.outcome, entry?.note, entry?.worker, entry?.runNo],
          ["stale-recovered", "lost", "worker", 1],
        );
      },
    },
    {
      name: "a lease of 200 ms is one, not clamped by the port: after 400 ms its claim is recovered once",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({}, { kinds: [{ kind: "a", leaseMs: 200 }] });
        equal([run.leaseMs, run.leaseExpiresAt.getTime()], [200, (await bench.now()) + 200]);
        await bench.advance(400);
        for (const expected of [1, 0]) {
          const holders = [{ worker: run.worker, overdueOnly: true }];
          const { claims } = await bench.store.findStale({ holders, orphans: false, limit: 10 });
          equal(claims.length, expected);
          const recoveries = claims.map(({ jobId: id, runCount, holder: worker }) =>
            recovery({ id, runCount, worker }),
          );
          const { applied } = await bench.store.recover({ recoveries });
          equal(
            applied,
            Array.from({ length: expected }, () => true),
          );
        }
        equal(await bench.outcomes(run.id), ["stale-recovered"]);
      },
    },
    {
      name: "a recovery at the backstop ends the job dead",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 1_000 });
        await bench.advance(1_000);
        await bench.store.recover({ recoveries: [recovery(run, { outcome: "dead" })] });
        const { status, failureCount } = await bench.find(run.id);
        equal([status, failureCount], ["dead", 1]);
        equal(await bench.outcomes(run.id), ["dead"]);
      },
    },
    {
      name: "a claim that is not stale is not recovered: neither overdue nor its holder dead",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        equal(await bench.store.recover({ recoveries: [recovery(run)] }), { applied: [false] });
        await bench.advance(60_000);
        equal(await bench.store.recover({ recoveries: [recovery(run)] }), { applied: [true] });
      },
    },
    {
      name: "an extension or a beat that came in between wins over a recovery",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 1_000 });
        await bench.advance(1_000);
        const extensions = [{ jobId: run.id, runCount: 1, leaseMs: 5_000 }];
        await bench.store.extendLease({ worker: run.worker, extensions });
        equal(await bench.store.recover({ recoveries: [recovery(run)] }), { applied: [false] });
      },
    },
    {
      name: "a worker that lost its lease is refused, the one that has the claim now is not",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 200 });
        await bench.advance(400);
        await bench.store.recover({ recoveries: [recovery(run)] });
        const second = await bench.claimOne(await bench.worker());
        equal(await bench.settle(run), "lost");
        equal(await bench.settle(second), "applied");
      },
    },
    {
      name: "claims that nobody answers for are orphans",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        equal(await orphans(bench), []);
        await bench.store.stopWorker({ worker: run.worker });
        equal(await orphans(bench), []);
        await bench.advance(60_000);
        equal(await orphans(bench), [run.id]);
      },
    },
    {
      name: "a claim that has been overdue for a minute is an orphan, though its worker lives",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 1_000 });
        await bench.advance(60_000);
        await beat(bench, run.worker);
        equal(await orphans(bench), []);
        await bench.advance(1_000);
        equal(await orphans(bench), [run.id]);
      },
    },
    {
      name: "a beat counts the others that live",
      needs: ["clock"],
      check: async (bench) => {
        const [me, ended] = [await bench.worker(), await bench.worker()];
        await bench.store.stopWorker({ worker: ended });
        await bench.worker();
        const { others } = await beat(bench, me);
        // A store that does not count leaves it out.
        if (others === undefined) return;
        equal(others, 1);
        await bench.advance(60_000);
        equal((await beat(bench, me)).others, 0);
      },
    },
    {
      name: "a beat counts nobody who has not been heard of for five minutes, however patient",
      needs: ["clock"],
      check: async (bench) => {
        const [me] = [await bench.worker(), await bench.worker({ workerTimeoutMs: 1e10 })];
        await bench.advance(299_000);
        const { others } = await beat(bench, me);
        if (others === undefined) return;
        equal(others, 1);
        await bench.advance(1_000);
        equal((await beat(bench, me)).others, 0);
      },
    },
    {
      name: "a claim is found once, also where its holder is named and has ended",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        await bench.store.stopWorker({ worker: run.worker });
        await bench.advance(60_000);
        for (const overdueOnly of [false, true]) {
          const holders = [{ worker: run.worker, overdueOnly }];
          const { claims } = await bench.store.findStale({ holders, orphans: true, limit: 10 });
          equal(
            claims.map(({ jobId }) => jobId),
            [run.id],
          );
        }
      },
    },
    {
      name: "a dead worker that holds nothing any more is given up, and is back with its next beat",
      needs: ["clock"],
      check: async (bench) => {
        const [observer, other] = [await bench.worker(), await bench.worker()];
        await bench.advance(60_000);
        equal((await beat(bench, observer)).silent.length, 1);
        const holders = [{ worker: other, overdueOnly: false }];
        equal(await bench.store.findStale({ holders, orphans: false, limit: 10 }), { claims: [] });
        equal((await beat(bench, observer)).silent, []);
        await beat(bench, other);
        await bench.advance(60_000);
        equal((await beat(bench, observer)).silent.length, 1);
      },
    },
    {
      name: "an aborted signal rejects with its reason, and nothing is extended, said or recovered",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        const observer = await bench.worker();
        await bench.advance(60_000);
        const { leaseExpiresAt } = await bench.find(run.id);
        const { worker } = run;
        const extension = { jobId: run.id, runCount: run.runCount, leaseMs: 9_000_000 };
        const { store } = bench;
        await refused((signal) => ({
          extendLease: () => store.extendLease({ worker, extensions: [extension], signal }),
          beat: () => store.beat({ ...registration, worker, signal }),
          findStale: () => store.findStale({ holders: [], orphans: true, limit: 10, signal }),
          recover: () => store.recover({ recoveries: [recovery(run)], signal }),
        }));
        const found = await bench.find(run.id);
        equal([found.status, found.leaseExpiresAt], ["claimed", leaseExpiresAt]);
        equal((await beat(bench, observer)).silent.length, 1);
      },
    },
  ],
};
