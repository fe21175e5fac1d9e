import { type Bench, equal, failure, holds, type Topic } from "./bench.ts";

class RolledBack extends Error {}

const rollBack = (bench: Bench, work: (tx: unknown) => Promise<unknown>) =>
  bench
    .transaction(async (tx) => {
      await work(tx);
      throw new RolledBack();
    })
    .catch((error: unknown) => {
      if (!(error instanceof RolledBack)) throw error;
    });

export const transactionTopic: Topic = {
  topic: "transactions",
  checks: [
    {
      name: "a job enqueued in a transaction exists when that commits, and never when it rolls back",
      needs: ["transactions"],
      check: async (bench) => {
        const [kept, gone] = [bench.job(), bench.job()];
        await bench.transaction(async (tx) => bench.store.within?.(tx).enqueue({ jobs: [kept] }));
        await rollBack(bench, async (tx) => bench.store.within?.(tx).enqueue({ jobs: [gone] }));
        equal(await bench.query(), [kept.id]);
      },
    },
    {
      name: "a merge in a transaction that rolls back has not happened",
      needs: ["transactions"],
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k", payload: "1" });
        const job = bench.job({ dedupKey: "k", payload: "2" });
        await rollBack(bench, async (tx) => bench.store.within?.(tx).enqueue({ jobs: [job] }));
        equal((await bench.find(id)).payload, 1);
        equal(await bench.outcomes(id), []);
      },
    },
    {
      name: "a run completes with the handler's own transaction, or not at all",
      needs: ["transactions"],
      check: async (bench) => {
        const run = await bench.running();
        const { worker, id: jobId, runCount } = run;
        const request = { worker, jobId, runCount, note: "in tx", attachment: '{"n":1}' };
        await rollBack(bench, async (tx) => bench.store.complete?.(tx, request));
        equal((await bench.find(run.id)).status, "claimed");
        await bench.transaction(async (tx) => bench.store.complete?.(tx, request));
        equal((await bench.find(run.id)).status, "completed");
        const [entry] = await bench.journal(run.id);
        equal([entry?.note, entry?.attachment], ["in tx", { n: 1 }]);
        equal(await bench.settle(run), "done");
      },
    },
    {
      name: "a lost claim rejects with claim-lost, and its transaction cannot commit",
      needs: ["transactions"],
      check: async (bench) => {
        const { worker, id: jobId, runCount } = await bench.running();
        const held = { worker, jobId, runCount, note: null, attachment: null };
        const lost = [
          { ...held, runCount: 7 },
          { ...held, worker: await bench.worker() },
          { ...held, jobId: bench.job().id },
        ];
        for (const request of lost) {
          const job = bench.job();
          const thrown: unknown[] = [];
          await bench
            .transaction(async (tx) => {
              await bench.store.within?.(tx).enqueue({ jobs: [job] });
              // Whoever passes over it all the same commits nothing.
              await bench.store.complete?.(tx, request).catch((error) => thrown.push(error));
            })
            .catch(() => undefined);
          holds(thrown.length === 1, "a claim that is lost cannot be completed");
          await failure(Promise.reject(thrown[0]), "claim-lost");
          equal(await bench.store.findJob({ id: job.id }), { job: null });
          equal((await bench.find(jobId)).status, "claimed");
        }
      },
    },
  ],
};
