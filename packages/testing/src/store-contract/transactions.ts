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
        const run = await bench.running();
        const job = bench.job();
        const { worker, id: jobId } = run;
        const request = { worker, jobId, runCount: 7, note: null, attachment: null };
        await bench
          .transaction(async (tx) => {
            await bench.store.within?.(tx).enqueue({ jobs: [job] });
            const completing = bench.store.complete?.(tx, request);
            holds(completing, "a store with transactions completes in them");
            await failure(Promise.resolve(completing), "claim-lost");
          })
          .catch(() => undefined);
        equal(await bench.store.findJob({ id: job.id }), { job: null });
        equal((await bench.find(run.id)).status, "claimed");
      },
    },
  ],
};
