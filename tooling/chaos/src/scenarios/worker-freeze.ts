import { setTimeout as sleep } from "node:timers/promises";
import type { Scenario } from "./scenario.ts";

export const workerFreeze: Scenario = {
  name: "worker-freeze",
  summary: "a worker is stopped (SIGSTOP) beyond its leases and its time-out, then goes on",
  isQuick: true,
  isTested: true,
  worker: { lease: 2_000, workerTimeout: 2_500 },
  onlySuspectsLose: true,
  async fault(stage) {
    const worker = stage.someWorker();
    stage.suspects.add(worker.name);
    worker.signal("SIGSTOP");
    // In the time of its absence its jobs are recovered, run and settled by others.
    await sleep(Math.max(stage.pace.faultMs, 4_000));
    worker.signal("SIGCONT");
  },
};

export const blockedLoops: Scenario = {
  name: "blocked-loops",
  summary:
    "handlers block the event loops of all workers for longer than their leases, again and again",
  worker: { lease: 2_000, workerTimeout: 2_500 },
  async fault(stage) {
    const until = performance.now() + stage.pace.faultMs;
    while (performance.now() < until) {
      await Promise.all(
        stage.workers.map((worker) => worker.call("block", { ms: 500 + stage.random() * 3_000 })),
      );
      await sleep(200);
    }
  },
};
