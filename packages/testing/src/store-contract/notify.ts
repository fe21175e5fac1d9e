import { type Bench, holds, type Topic } from "./bench.ts";

const patienceMs = 5_000;

/** Counts the wakes of a subscription that listens; `next` resolves with the next one after `during` has begun. */
async function listen(bench: Bench) {
  let wakes = 0;
  let onWake = () => undefined as unknown;
  const subscription = bench.store.listen?.({
    onWake: () => {
      wakes += 1;
      onWake();
    },
  });
  holds(subscription, "the store is a notifier");
  await subscription?.listening;
  /** Whether a wake comes while the work goes on or soon after. */
  const wakesBy = async (work: () => Promise<unknown>): Promise<boolean> => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const woken = new Promise<boolean>((resolve) => {
      onWake = () => resolve(true);
      timer = setTimeout(() => resolve(false), patienceMs);
    });
    await work();
    const answer = await woken;
    clearTimeout(timer);
    onWake = () => undefined;
    return answer;
  };
  return { wakesBy, count: () => wakes, close: async () => subscription?.close() };
}

export const notifyTopic: Topic = {
  topic: "notifications",
  checks: [
    {
      name: "enqueue, pause, retry, release, hand-back and requeue wake",
      needs: ["notifications"],
      check: async (bench) => {
        const worker = await bench.worker();
        const { wakesBy, close } = await listen(bench);
        try {
          holds(await wakesBy(() => bench.add()), "an enqueue wakes");
          for (const outcome of ["paused", "retried", "released"] as const) {
            const run = await bench.claimOne(worker);
            holds(await wakesBy(() => bench.settle(run, outcome)), `${outcome} wakes`);
          }
          const run = await bench.claimOne(worker);
          const claims = [{ jobId: run.id, runCount: run.runCount }];
          holds(await wakesBy(() => bench.store.handBack({ worker, claims })), "a hand-back wakes");
          await bench.settle(await bench.claimOne(worker), "dead");
          holds(await wakesBy(() => bench.store.retry({ id: run.id })), "a requeued job wakes");
        } finally {
          await close();
        }
      },
    },
    {
      name: "a merge that makes a job due earlier wakes",
      needs: ["notifications"],
      check: async (bench) => {
        await bench.add({ dedupKey: "k", delayMs: 1e9 });
        const { wakesBy, close } = await listen(bench);
        try {
          holds(await wakesBy(() => bench.add({ dedupKey: "k" })), "the merge wakes");
        } finally {
          await close();
        }
      },
    },
    {
      name: "a job due within the longest sleep of a live worker wakes",
      needs: ["notifications"],
      check: async (bench) => {
        await bench.worker({ pollMaxMs: 60_000 });
        const { wakesBy, close } = await listen(bench);
        try {
          holds(await wakesBy(() => bench.add({ delayMs: 30_000 })), "it would be overslept");
        } finally {
          await close();
        }
      },
    },
    {
      name: "a clock that jumps past everybody's last beat keeps no such job from waking",
      needs: ["notifications", "clock"],
      check: async (bench) => {
        const worker = await bench.worker({ pollMaxMs: 60_000 });
        await bench.add();
        const run = await bench.claimOne(worker);
        const { wakesBy, close } = await listen(bench);
        try {
          await bench.advance(7 * 86_400_000);
          holds(await wakesBy(() => bench.add({ delayMs: 30_000 })), "a new job wakes");
          const delayMs = 30_000;
          holds(
            await wakesBy(() => bench.settle(run, "paused", { delayMs })),
            "a paused one wakes",
          );
        } finally {
          await close();
        }
      },
    },
    {
      name: "a closed subscription is called no more",
      needs: ["notifications"],
      check: async (bench) => {
        const closed = await listen(bench);
        const open = await listen(bench);
        try {
          await closed.close();
          const before = closed.count();
          holds(await open.wakesBy(() => bench.add()), "the other one is woken");
          holds(closed.count() === before, "the closed one is not");
        } finally {
          await open.close();
        }
      },
    },
  ],
};
