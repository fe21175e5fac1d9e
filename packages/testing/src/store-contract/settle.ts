import { type ClaimedJob, FAR_FUTURE_MS } from "@venturi/core";
import { equal, refused, registration, settlementOf, type Topic } from "./bench.ts";

export const settleTopic: Topic = {
  topic: "settle",
  checks: [
    {
      name: "complete ends the job: finished, without carry, with one entry",
      check: async (bench) => {
        const run = await bench.running();
        equal(
          await bench.settle(run, "completed", { note: "done", attachment: '{"n":1}' }),
          "applied",
        );
        const job = await bench.find(run.id);
        equal(
          [job.status, job.runCount, job.failureCount, job.visibleAt, job.carry, job.claimedBy],
          ["completed", 1, 0, null, null, null],
        );
        const [entry, ...rest] = await bench.journal(run.id);
        equal(rest, []);
        equal(
          [entry?.outcome, entry?.note, entry?.attachment, entry?.runNo, entry?.worker],
          ["completed", "done", { n: 1 }, 1, "worker"],
        );
        equal(job.finishedAt, entry?.recordedAt);
      },
    },
    {
      name: "pause re-pends with its carry and without a failure",
      check: async (bench) => {
        const run = await bench.running();
        equal(await bench.settle(run, "paused", { carry: '{"page":2}' }), "applied");
        const { status, carry, failureCount, claimedBy, leaseExpiresAt } = await bench.find(run.id);
        equal([status, carry, failureCount], ["pending", { page: 2 }, 0]);
        equal([claimedBy, leaseExpiresAt], [null, null]);
        const [again] = await bench.claim();
        equal(
          [again?.id, again?.runCount, JSON.parse(again?.carry ?? "")],
          [run.id, 2, { page: 2 }],
        );
      },
    },
    {
      name: "retry counts a failure and keeps the carry that is stored where it brings none",
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "paused", { carry: "1" });
        const second = await bench.claimOne(await bench.worker());
        const detail = '{"name":"Error","code":"E1"}';
        equal(await bench.settle(second, "retried", { note: "broke", detail }), "applied");
        const { status, carry, runCount, failureCount } = await bench.find(run.id);
        equal([status, carry, runCount, failureCount], ["pending", 1, 2, 1]);
        const entry = (await bench.journal(run.id)).at(-1);
        equal(
          [entry?.outcome, entry?.note, entry?.detail, entry?.runNo],
          ["retried", "broke", { name: "Error", code: "E1" }, 2],
        );
      },
    },
    {
      name: "dead counts a failure and keeps what was stored",
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "paused", { carry: "1" });
        const second = await bench.claimOne(await bench.worker());
        equal(await bench.settle(second, "dead", { note: "gave up" }), "applied");
        const job = await bench.find(run.id);
        equal(
          [job.status, job.carry, job.runCount, job.failureCount, job.visibleAt],
          ["dead", 1, 2, 1, null],
        );
        equal(job.finishedAt, (await bench.journal(run.id)).at(-1)?.recordedAt);
        equal(await bench.claimedIds(), []);
      },
    },
    {
      name: "release re-pends at once without a failure, and carry as stored before the run",
      check: async (bench) => {
        const run = await bench.running();
        equal(await bench.settle(run, "released"), "applied");
        const { status, carry, failureCount, runCount } = await bench.find(run.id);
        equal([status, carry, failureCount, runCount], ["pending", null, 0, 1]);
        equal(await bench.outcomes(run.id), ["released"]);
        equal(await bench.claimedIds(), [run.id]);
      },
    },
    {
      name: "release is due at once, whatever else it may name",
      check: async (bench) => {
        for (const moment of [{ delayMs: 60_000 }, { runAt: FAR_FUTURE_MS }]) {
          const run = await bench.running();
          equal(await bench.settle(run, "released", moment), "applied");
          equal(await bench.claimedIds(), [run.id]);
        }
      },
    },
    {
      name: "a job that is due again at once keeps its place",
      check: async (bench) => {
        const run = await bench.running();
        const later = await bench.add();
        await bench.settle(run, "paused");
        equal(await bench.claimedIds(), [run.id, later]);
      },
    },
    {
      name: "pause and retry are due by the store's clock",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        await bench.advance(1_000);
        await bench.settle(run, "retried", { delayMs: 5_000 });
        equal((await bench.find(run.id)).visibleAt?.getTime(), (await bench.now()) + 5_000);
        await bench.advance(4_999);
        equal(await bench.claimedIds(), []);
        await bench.advance(1);
        const again = await bench.claimOne(await bench.worker());
        await bench.settle(again, "paused", { runAt: (await bench.now()) + 7_000 });
        equal((await bench.find(run.id)).visibleAt?.getTime(), (await bench.now()) + 7_000);
      },
    },
    {
      name: "an absolute time that has passed is now, and a far one saturates",
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "paused", { runAt: 0 });
        const again = await bench.claimOne(await bench.worker());
        equal(again.id, run.id);
        await bench.settle(again, "paused", { delayMs: 1e300 });
        equal((await bench.find(run.id)).visibleAt, new Date(FAR_FUTURE_MS));
        const other = await bench.running();
        await bench.settle(other, "paused", { runAt: FAR_FUTURE_MS + 1_000 });
        equal((await bench.find(other.id)).visibleAt, new Date(FAR_FUTURE_MS));
      },
    },
    {
      name: "a run's entry says when it was claimed and when it ended",
      needs: ["clock"],
      check: async (bench) => {
        const run = await bench.running();
        const claimedAt = await bench.now();
        await bench.advance(2_500);
        await bench.settle(run);
        const [entry] = await bench.journal(run.id);
        equal(
          [entry?.startedAt?.getTime(), entry?.recordedAt.getTime()],
          [claimedAt, claimedAt + 2_500],
        );
      },
    },
    {
      name: "a settlement applies only where job, worker and run count still hold the claim",
      check: async (bench) => {
        const run = await bench.running();
        const stranger = await bench.worker();
        equal(await bench.settle({ ...run, worker: stranger }), "lost");
        equal(await bench.settle({ ...run, runCount: 2 }), "lost");
        equal(await bench.settle({ ...run, id: bench.newId() }), "lost");
        equal((await bench.find(run.id)).status, "claimed");
        equal(await bench.outcomes(run.id), []);
      },
    },
    {
      name: "runs of one worker are told apart by their run count",
      check: async (bench) => {
        const run = await bench.running();
        await bench.settle(run, "released");
        const again = await bench.claimOne(run.worker);
        equal(await bench.settle({ ...again, runCount: 1 }), "lost");
        equal(await bench.settle(again), "applied");
      },
    },
    {
      name: "a repeated settlement that finds its own entry is done",
      check: async (bench) => {
        for (const outcome of ["completed", "paused", "retried", "dead", "released"] as const) {
          const run = await bench.running({ kind: outcome });
          equal(await bench.settle(run, outcome), "applied");
          equal(await bench.settle(run, outcome), "done");
          equal((await bench.journal(run.id)).length, 1);
        }
      },
    },
    {
      name: "settlements of one call stand or fall each by itself, with verdicts in order",
      check: async (bench) => {
        await bench.enqueue({}, {}, {}, {});
        const worker = await bench.worker();
        const { jobs } = await bench.claimFor(worker);
        const [a, b, c, d] = jobs;
        if (!a || !b || !c || !d) throw new Error("four jobs are claimed");
        const settlements = [
          settlementOf(a),
          settlementOf({ id: bench.newId(), runCount: 1 }),
          settlementOf(b, "paused"),
          settlementOf(c, "dead"),
          settlementOf({ ...d, runCount: 7 }, "retried"),
        ];
        const { verdicts } = await bench.store.settle({ worker, settlements });
        equal(verdicts, ["applied", "lost", "applied", "applied", "lost"]);
        const statuses = await Promise.all(
          jobs.map(async ({ id }) => (await bench.find(id)).status),
        );
        equal(statuses, ["completed", "pending", "dead", "claimed"]);
      },
    },
    {
      name: "a hand-back leaves no trace: pending, run count as before, no entry, its old place",
      check: async (bench) => {
        const id = await bench.add();
        const before = await bench.find(id);
        const worker = await bench.worker();
        const run = await bench.claimOne(worker);
        const later = await bench.add();
        const claims = [{ jobId: run.id, runCount: 1 }];
        equal(await bench.store.handBack({ worker, claims }), { verdicts: ["applied"] });
        equal(await bench.find(id), before);
        equal(await bench.outcomes(id), []);
        equal(await bench.claimedIds(), [id, later]);
      },
    },
    {
      name: "a hand-back of a claim that is not held is lost",
      check: async (bench) => {
        const run = await bench.running();
        const ref = { jobId: run.id, runCount: run.runCount };
        const stranger = await bench.worker();
        equal(await bench.store.handBack({ worker: stranger, claims: [ref] }), {
          verdicts: ["lost"],
        });
        await bench.settle(run);
        equal(await bench.store.handBack({ worker: run.worker, claims: [ref] }), {
          verdicts: ["lost"],
        });
        equal(await bench.store.handBack({ worker: run.worker, claims: [] }), { verdicts: [] });
      },
    },
    {
      name: "a hand-back that comes late leaves the worker's next claim of the job alone, though its run count is the same",
      needs: ["clock"],
      check: async (bench) => {
        await bench.add();
        const worker = await bench.worker();
        const handBack = async (run: ClaimedJob) => {
          const claims = [
            { jobId: run.id, runCount: run.runCount, leaseExpiresAt: run.leaseExpiresAt },
          ];
          return (await bench.store.handBack({ worker, claims })).verdicts;
        };
        const first = await bench.claimOne(worker);
        equal(await handBack(first), ["applied"]);
        await bench.advance(1_000);
        const second = await bench.claimOne(worker);
        equal([second.id, second.runCount], [first.id, first.runCount]);
        equal(await handBack(first), ["lost"]);
        equal((await bench.find(first.id)).status, "claimed");
        equal(await handBack(second), ["applied"]);
      },
    },
    {
      name: "an aborted signal rejects with its reason, and nothing is started, claimed, settled or ended",
      check: async (bench) => {
        const run = await bench.running();
        const waiting = await bench.add();
        const { worker } = run;
        const claims = [{ jobId: run.id, runCount: run.runCount }];
        const { store } = bench;
        await refused((signal) => ({
          startWorker: () => store.startWorker({ ...registration, signal }),
          claim: () => bench.claimFor(worker, { signal }),
          settle: () => store.settle({ worker, settlements: [settlementOf(run)], signal }),
          handBack: () => store.handBack({ worker, claims, signal }),
          stopWorker: () => store.stopWorker({ worker, signal }),
        }));
        equal((await bench.find(waiting)).status, "pending");
        equal(await bench.settle(run), "applied");
        equal((await store.stats({})).stats.workers, 1);
      },
    },
  ],
};
